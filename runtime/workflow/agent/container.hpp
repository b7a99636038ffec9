// A call in a container of this instance, started by docker, or by podman where there is no docker. The container is
// not beneath the agent but beneath the engine, and may outlive the command that started it. So it has a name of its
// own, and D/containers/NAME says from before its start until its end which engine has it: what is found there is
// removed by name, by the call when it is stopped, by the keeper when the agent has died.
//
// The instance is the sandbox, the container only brings its software: it shares the instance's network and memory
// (NCCL and data loaders want both), and sees D/work under the same path. Variables go by name, so that no value
// stands in a command line. Any thread; what touches files or starts programs blocks.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

struct ContainerEngine {
  std::string program;  // absolute
  bool podman = false;
};

// In $PATH. config: there is neither.
Result<ContainerEngine> find_container_engine();

struct ContainerStart {
  std::string name, image;
  std::string instance, directory;     // D; where the program starts, in D/work
  std::vector<std::string> variables;  // names; their values are in the environment of the command
  std::vector<std::string> readable;   // more folders that it sees, under the same path
  bool input = false;                  // it has the command's standard input
  std::string gpus;                    // "": none; "all"; "0,1": numbers or UUIDs
  std::vector<std::string> argv;       // for the image's entry point, where it has one
};

// The command that runs it to its end, with its output and exit code (125: the engine did not start it).
constexpr int container_not_started = 125;
std::vector<std::string> container_command(const ContainerEngine& engine, const ContainerStart& start);

// The GPUs that a container is given here: those of `visible` ($CUDA_VISIBLE_DEVICES; null: not set) where somebody,
// such as Slurm, has chosen; else all that have a file in `devices`.
std::string container_gpus(const char* visible, const std::string& devices = "/dev");

// D/containers.
Result<> note_container(const std::string& instance, const std::string& name, const ContainerEngine& engine);
void forget_container(const std::string& instance, const std::string& name);
struct NotedContainer {
  std::string name, program;
};
std::vector<NotedContainer> noted_containers(const std::string& instance);
// Ends it and removes it. Exit code 0: it is gone, or there was none.
std::vector<std::string> removal_command(const NotedContainer& container);
// Removes all that are noted, at the same time, all within the limit. state: one is still there; the others are gone.
Result<> end_containers(const std::string& instance, int limit_ms = 30'000);

}  // namespace rille::agent
