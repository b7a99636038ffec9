#include "runtime/workflow/provider/ssh/answers.hpp"

#include <algorithm>
#include <sstream>

#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {
std::int64_t instant(const Value& file, const char* field) { return std::max<std::int64_t>(0, file.integer(field)); }
}  // namespace

SshProbe read_ssh_probe(const std::string& text) {
  SshProbe out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    double number = 0;
    words >> what >> number;
    const int count = amounts::count(number);
    if (what == "cpus") out.cpus = count;
    if (what == "memory") out.memory_bytes = amounts::bytes(number, amounts::kib);
    if (what == "live") out.live = count;
    if (what != "gpu") continue;
    ++out.gpu_count;
    out.gpu_memory_bytes = amounts::bytes(number, amounts::mib);
    std::string name;
    std::getline(words, name);
    out.gpu = gpu_model(name.substr(std::min(name.find_first_not_of(", "), name.size())));
  }
  return out;
}

Result<std::vector<Machine>> read_ssh_machines(const SshHost& host, const std::string& text) {
  std::vector<Machine> out;
  std::istringstream lines(text);
  std::string directory;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line[0] == '/') {
      directory = line;
      continue;
    }
    RILLE_TRY(const Value file, Value::from_json(line));
    if (!out.empty() && out.back().channel.directory == directory) {
      out.back().notice_wall_us = instant(file, "deadline_wall_us");
      continue;
    }
    Machine m;
    m.id = file.text("id");
    // Hosts with a common home see each other's folders. And a job may write its machine.json: with the id of a machine
    // elsewhere and an expired tag, `rille gc` would end that machine.
    if (m.id != host.name + "/" + directory.substr(directory.rfind('/') + 1)) continue;
    m.state = file.boolean("terminating") ? MachineState::terminating : MachineState::live;
    m.tag = file.text("tag");
    m.created_wall_us = instant(file, "created_wall_us");
    m.expires_wall_us = instant(file, "expires_wall_us");
    m.channel.argv_prefix = host.prefix();
    m.channel.quoted = true;
    m.channel.directory = directory;
    m.details.set("host", host.address).set("directory", directory);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace rille::provider
