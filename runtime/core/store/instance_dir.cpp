#include "runtime/core/store/instance_dir.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/core/store/file.hpp"

namespace rille::store {

namespace fs = std::filesystem;

namespace {
std::string machine_path(const std::string& directory) { return directory + "/" + InstanceFile::name; }
constexpr std::int64_t small_bytes_max = 4 << 20;
}  // namespace

Result<std::optional<Value>> read_machine(const std::string& directory) {
  auto text = read_file(machine_path(directory), small_bytes_max);
  if (!text) {
    if (text.error().code == "errno " + std::to_string(ENOENT)) return std::optional<Value>();
    return std::move(text).error();
  }
  auto value = Value::from_json(*text);
  if (!value)
    return make_error(ErrorKind::integrity, "'" + machine_path(directory) + "' is damaged: " + value.error().message,
                      "release the machine and rent again");
  return std::optional<Value>(std::move(*value));
}

Result<> write_machine(const std::string& directory, const Value& machine) {
  return write_file_atomic(machine_path(directory), machine.to_json_pretty(), 0600);
}

std::optional<AgentOwner> read_agent_owner(const std::string& directory) {
  auto text = read_file(directory + "/" + agent_lock_name, small_bytes_max);
  if (!text) return {};
  auto value = Value::from_json(*text);
  if (!value || value->integer("pid") <= 0 || value->integer("pid") > INT32_MAX) return {};
  return AgentOwner{value->integer("pid"), static_cast<std::uint64_t>(value->integer("start_time"))};
}

std::optional<std::int64_t> read_notice(const std::string& directory) {
  auto text = read_file(directory + "/" + notice_name, small_bytes_max);
  if (!text) return {};
  auto value = Value::from_json(*text);
  if (!value || value->integer("deadline_wall_us") <= 0) return {};
  return value->integer("deadline_wall_us");
}

Result<> write_notice(const std::string& directory, std::int64_t deadline_wall_us) {
  return write_file_atomic(directory + "/" + notice_name, Value().set("deadline_wall_us", deadline_wall_us).to_json(),
                           0600);
}

Result<> mark_terminating(const std::string& directory) {
  RILLE_TRY(auto machine, read_machine(directory));
  if (!machine || machine->boolean("terminating")) return {};
  machine->set("terminating", true);
  return write_machine(directory, *machine);
}

Result<> remove_instance_directory(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path());
  if (error) return error.value() == ENOENT ? Result<>() : Result<>(errno_error("list", directory, error.value()));
  for (const std::string& name : names)
    if (name != machine_path(directory)) RILLE_CHECK(remove_tree(name));
  RILLE_CHECK(remove_tree(machine_path(directory)));
  if (rmdir(directory.c_str()) < 0 && errno != ENOENT) return errno_error("remove", directory, errno);
  return {};
}

}  // namespace rille::store
