// A call in a container on this instance, started by docker, or by podman if there is no docker. The container is a
// child of the engine, not of the agent, and may outlive the command that started it. So it has its own name, and
// D/containers/NAME records its engine from before its start until its end. A recorded container is removed by name: by
// the call when it is stopped, by the keeper when the agent has died.
//
// The instance is the sandbox; the container only provides software. It shares the instance's network and IPC memory
// (NCCL and data loaders need both) and sees D/work under the same path. Variables are passed by name, so that no value
// appears on a command line. Any thread; functions that touch files or start programs block.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

struct ContainerEngine {
  std::string program;  // absolute
  bool podman = false;
};

// Searches $PATH. config: neither is installed.
Result<ContainerEngine> find_container_engine();

struct ContainerStart {
  std::string name, image;
  std::string instance, directory;     // D; the program's directory below D/work
  std::vector<std::string> variables;  // names; the values are in the command's environment
  std::vector<std::string> readable;   // further folders, mounted read-only under the same path
  bool input = false;                  // connect the command's standard input
  std::string gpus;                    // "": none; "all"; "0,1": numbers or UUIDs
  std::vector<std::string> argv;       // arguments of the image's entry point, if it has one
};

// The command that runs the container to its end, with its output and exit code (125: the engine did not start it).
constexpr int container_not_started = 125;
std::vector<std::string> container_command(const ContainerEngine& engine, const ContainerStart& start);

// The GPUs for a container: those of `visible` ($CUDA_VISIBLE_DEVICES; null: not set) if a scheduler such as Slurm has
// set it, else all with a device file in `devices`.
std::string container_gpus(const char* visible, const std::string& devices = "/dev");

// D/containers.
Result<> note_container(const std::string& instance, const std::string& name, const ContainerEngine& engine);
void forget_container(const std::string& instance, const std::string& name);
struct NotedContainer {
  std::string name, program;
};
std::vector<NotedContainer> noted_containers(const std::string& instance);
// Kills and removes the container. Exit code 0: it is gone, or did not exist.
std::vector<std::string> removal_command(const NotedContainer& container);
// Removes all recorded containers in parallel, within the limit. state: names one that is still there; the others are
// gone.
Result<> end_containers(const std::string& instance, int limit_ms = 30'000);

}  // namespace rille::agent
