#include "runtime/workflow/agent/container.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <sstream>

#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/spawn.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

namespace fs = std::filesystem;

namespace {

// The script's `rm` may fail because no container has that name (docker before 27, podman). Therefore `inspect` must
// fail too before the removal counts as successful.
constexpr int poll_ms = 10, killed_ms_max = 1000;  // wait for a killed command, which may hang on a disk or device
constexpr const char* remove_script = R"sh("$1" rm -f "$2" >/dev/null 2>&1 && exit 0
! "$1" container inspect "$2" >/dev/null 2>&1)sh";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, at);)
    if (!part.empty()) out.push_back(std::move(part));
  return out;
}

// Whether a file in /dev is a GPU: "nvidia0" is, "nvidiactl" is not.
bool is_gpu(const std::string& file) {
  return file.starts_with("nvidia") && file.size() > 6 &&
         std::all_of(file.begin() + 6, file.end(), [](unsigned char c) { return std::isdigit(c); });
}

// Adds the options for GPUs: docker uses NVIDIA's runtime (--gpus), podman uses NVIDIA's CDI devices.
void add_gpus(const ContainerEngine& engine, const std::string& gpus, std::vector<std::string>& out) {
  if (gpus.empty()) return;
  if (!engine.podman) {
    out.insert(out.end(), {"--gpus", gpus == "all" ? gpus : "\"device=" + gpus + "\""});
    return;
  }
  for (const std::string& one : split(gpus, ',')) out.insert(out.end(), {"--device", "nvidia.com/gpu=" + one});
}

std::string file_of(const std::string& instance, const std::string& name) { return instance + "/containers/" + name; }

}  // namespace

Result<ContainerEngine> find_container_engine() {
  if (std::string docker = find_program("docker"); !docker.empty()) return ContainerEngine{std::move(docker), false};
  if (std::string podman = find_program("podman"); !podman.empty()) return ContainerEngine{std::move(podman), true};
  return make_error(ErrorKind::config, "there is no docker and no podman on the instance",
                    "install one there with box:exec; on Kubernetes and RunPod the instance is a container itself: "
                    "name its `image` in the provider's settings");
}

std::vector<std::string> container_command(const ContainerEngine& engine, const ContainerStart& start) {
  const std::string work = start.instance + "/work";
  std::vector<std::string> out{engine.program, "run",  "--rm",  "--name", start.name,
                               "--network",    "host", "--ipc", "host"};
  if (start.input) out.push_back("-i");
  add_gpus(engine, start.gpus, out);
  // Run as this user, so that this user can delete the files that the container writes. In rootless podman the
  // container's root already is this user.
  if (!engine.podman && ::getuid() != 0)
    out.insert(out.end(), {"--user", fmt::format("{}:{}", ::getuid(), ::getgid())});
  out.insert(out.end(), {"-v", work + ":" + work, "-w", start.directory});
  for (const std::string& folder : start.readable) out.insert(out.end(), {"-v", folder + ":" + folder + ":ro"});
  for (const std::string& name : start.variables) out.insert(out.end(), {"-e", name});
  out.push_back(start.image);
  out.insert(out.end(), start.argv.begin(), start.argv.end());
  return out;
}

std::string container_gpus(const char* visible, const std::string& devices) {
  bool any = false;
  std::error_code error;
  for (fs::directory_iterator it(devices, error), end; !error && it != end; it.increment(error))
    any = any || is_gpu(it->path().filename());
  if (!any) return "";
  if (!visible) return "all";
  const std::string chosen = visible;
  return chosen == "-1" || chosen == "NoDevFiles" ? "" : chosen;
}

Result<> note_container(const std::string& instance, const std::string& name, const ContainerEngine& engine) {
  RILLE_CHECK(store::make_directories(instance + "/containers"));
  return store::write_file_atomic(file_of(instance, name), engine.program, 0600);
}

void forget_container(const std::string& instance, const std::string& name) {
  ::unlink(file_of(instance, name).c_str());
}

std::vector<NotedContainer> noted_containers(const std::string& instance) {
  std::vector<NotedContainer> out;
  std::error_code error;
  for (fs::directory_iterator it(instance + "/containers", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    const Result<std::string> program = store::read_file(it->path(), 4096);
    if (name.starts_with("rille-") && program) out.push_back({name, *program});
  }
  return out;
}

std::vector<std::string> removal_command(const NotedContainer& container) {
  return {"/bin/sh", "-c", remove_script, "sh", container.program, container.name};
}

Result<> end_containers(const std::string& instance, int limit_ms) {
  struct Removal {
    NotedContainer of;
    pid_t pid;
  };
  std::vector<Removal> running;
  std::optional<Error> first;
  const auto failed = [&first](const NotedContainer& one) {
    if (!first)
      first = make_error(ErrorKind::state, fmt::format("the container '{}' does not stop", one.name),
                         fmt::format("{} rm -f {}", one.program, one.name));
  };
  for (NotedContainer& one : noted_containers(instance)) {
    Spawn removal;
    removal.argv = removal_command(one);
    removal.session = true;
    if (const Result<pid_t> pid = spawn(removal)) running.push_back({std::move(one), *pid});
    else if (!first) first = pid.error();
  }
  for (int waited_ms = 0; !running.empty() && waited_ms < limit_ms + killed_ms_max; waited_ms += poll_ms) {
    std::erase_if(running, [&](const Removal& r) {
      int status = 0;
      const pid_t ended = ::waitpid(r.pid, &status, WNOHANG);
      if (ended == 0 && waited_ms >= limit_ms) ::kill(-r.pid, SIGKILL);
      if (ended == 0) return false;
      if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) forget_container(instance, r.of.name);
      else failed(r.of);
      return true;
    });
    if (!running.empty()) ::usleep(poll_ms * 1000);
  }
  for (const Removal& r : running) failed(r.of);
  if (first) return *first;
  return {};
}

}  // namespace rille::agent
