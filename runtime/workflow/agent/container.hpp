// A call in a container on this instance, started by docker, or by podman if docker is not installed. The container is
// a child of the container engine, not of the agent, and may outlive the command that started it. So the container has
// a name, and the file D/containers/NAME names its engine from before the container's start until its end. A recorded
// container is removed by name: by the call when the call is stopped, by the keeper when the agent has died.
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
  std::string program;  // absolute path of the docker or podman command
  bool podman = false;
};

// Searches $PATH for docker, then podman. Fails with `config` if neither is installed.
Result<ContainerEngine> find_container_engine();

struct ContainerStart {
  std::string name, image;
  std::string instance, directory;     // instance: the directory D; directory: the working directory, below D/work
  std::vector<std::string> variables;  // names of variables to pass on; the values are in the command's environment
  std::vector<std::string> readable;  // folders to mount read-only in the container, under the path that they have here
  bool input = false;                 // connect the command's standard input to the container's
  std::string gpus;                   // "": no GPUs; "all"; or a list such as "0,1" of numbers or UUIDs
  std::vector<std::string> argv;      // arguments of the image's entry point, if it has one
};

// The command that runs a container to its end and passes on its output and exit code. Code 125: the engine did not
// start it.
constexpr int container_not_started = 125;
std::vector<std::string> container_command(const ContainerEngine& engine, const ContainerStart& start);

// The GPUs for a container, in the form of ContainerStart::gpus. `visible` is $CUDA_VISIBLE_DEVICES (null: not set), as
// a scheduler such as Slurm sets it: then only those GPUs. Otherwise all GPUs that have a device file in `devices`.
std::string container_gpus(const char* visible, const std::string& devices = "/dev");

// Record a container in D/containers, and remove that record.
Result<> note_container(const std::string& instance, const std::string& name, const ContainerEngine& engine);
void forget_container(const std::string& instance, const std::string& name);
struct NotedContainer {
  std::string name, program;
};
std::vector<NotedContainer> noted_containers(const std::string& instance);
// The command that kills and removes the container. Exit code 0: the container is gone, or did not exist.
std::vector<std::string> removal_command(const NotedContainer& container);
// Removes all recorded containers in parallel, within limit_ms. Fails with `state` and names one if any remain.
Result<> end_containers(const std::string& instance, int limit_ms = 30'000);

}  // namespace rille::agent
