// The output of the scripts in ssh/scripts.hpp, parsed into values. Hosts are not trusted: every line may be anything.
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/ssh/hosts.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// The answer of the script `probe`. Counts and sizes are at least 0.
struct SshProbe {
  int cpus = 0, live = 0, gpu_count = 0;
  std::int64_t memory_bytes = 0, gpu_memory_bytes = 0;
  std::string gpu;
};
SshProbe read_ssh_probe(const std::string& text);

// The answer of `create`, `describe` and `list`: for each instance a line with its directory, machine.json, and
// possibly notice.json. Machines whose id names another host or folder are left out. Error `invalid`: a line is not
// JSON.
Result<std::vector<Machine>> read_ssh_machines(const SshHost& host, const std::string& text);

}  // namespace rille::provider
