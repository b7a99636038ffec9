#include "runtime/workflow/agent/container.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::agent;

namespace {

using Words = std::vector<std::string>;

Words command(const ContainerEngine& engine, const std::string& gpus) {
  ContainerStart start;
  start.name = "rille-0123-1";
  start.image = "pytorch/pytorch";
  start.instance = "/i";
  start.directory = "/i/work/src";
  start.variables = {"TOKEN", "WHO"};
  start.gpus = gpus;
  start.argv = {"python3", "train.py"};
  return container_command(engine, start);
}

void make_executable(const std::string& path) {
  std::ofstream(path) << "#!/bin/sh\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace

TEST_CASE("container: the command of docker and of podman") {
  const std::string user = std::to_string(getuid()) + ":" + std::to_string(getgid());
  Words docker{"/d/docker", "run",   "--rm", "--name", "rille-0123-1", "--network",
               "host",      "--ipc", "host", "--gpus", "all"};
  if (getuid() != 0) docker.insert(docker.end(), {"--user", user});
  const Words rest{"-v",  "/i/work:/i/work", "-w",      "/i/work/src", "-e", "TOKEN", "-e",
                   "WHO", "pytorch/pytorch", "python3", "train.py"};
  docker.insert(docker.end(), rest.begin(), rest.end());
  CHECK(command({"/d/docker", false}, "all") == docker);

  Words podman{"/d/podman", "run",  "--rm",     "--name",           "rille-0123-1", "--network",       "host",
               "--ipc",     "host", "--device", "nvidia.com/gpu=2", "--device",     "nvidia.com/gpu=5"};
  podman.insert(podman.end(), rest.begin(), rest.end());
  CHECK(command({"/d/podman", true}, "2,5") == podman);

  const Words chosen = command({"/d/docker", false}, "0,1");
  CHECK(std::find(chosen.begin(), chosen.end(), "\"device=0,1\"") != chosen.end());
  const Words none = command({"/d/docker", false}, "");
  CHECK(std::find(none.begin(), none.end(), "--gpus") == none.end());
}

TEST_CASE("container: all GPUs of the machine, or the chosen ones") {
  TempDir dev;
  CHECK(container_gpus(nullptr, dev.file("none")).empty());
  std::ofstream(dev.file("nvidiactl")) << "";
  CHECK(container_gpus("0", dev.path).empty());  // a driver alone
  std::ofstream(dev.file("nvidia0")) << "";
  CHECK(container_gpus(nullptr, dev.path) == "all");
  CHECK(container_gpus("1,3", dev.path) == "1,3");
  CHECK(container_gpus("", dev.path).empty());
  CHECK(container_gpus("-1", dev.path).empty());
}

TEST_CASE("container: docker comes before podman, and neither is an error that says what to do") {
  TempDir temp;
  const std::string before = std::getenv("PATH");
  setenv("PATH", temp.path.c_str(), 1);
  auto none = find_container_engine();
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::config);
  CHECK(none.error().hint.find("image") != std::string::npos);
  make_executable(temp.file("podman"));
  CHECK(find_container_engine()->podman);
  make_executable(temp.file("docker"));
  CHECK(find_container_engine()->program == temp.file("docker"));
  setenv("PATH", before.c_str(), 1);
}

TEST_CASE("container: what is noted is ended, and forgotten when it is gone") {
  TempDir temp;
  const std::string log = temp.file("log"), engine = temp.file("docker");
  CHECK(noted_containers(temp.path).empty());
  std::ofstream(engine) << "#!/bin/sh\necho \"$@\" >>" << log << "\n[ \"$1\" != inspect ]\n";
  std::filesystem::permissions(engine, std::filesystem::perms::owner_all);
  REQUIRE(note_container(temp.path, "rille-a-1", {engine, false}).ok());
  REQUIRE(noted_containers(temp.path).size() == 1);
  CHECK(noted_containers(temp.path)[0].program == engine);
  CHECK(end_containers(temp.path).ok());
  std::ifstream said(log);
  std::string line;
  std::getline(said, line);
  CHECK(line == "rm -f rille-a-1");
  CHECK(noted_containers(temp.path).empty());

  std::ofstream(engine) << "#!/bin/sh\n[ \"$1\" = container ]\n";  // it is not removed, and still there
  REQUIRE(note_container(temp.path, "rille-a-2", {engine, false}).ok());
  CHECK(end_containers(temp.path).error().message.find("rille-a-2") != std::string::npos);
  CHECK(noted_containers(temp.path).size() == 1);
}

TEST_CASE("container: an engine that hangs holds up no other, and not for longer than the limit") {
  TempDir temp;
  const std::string hangs = temp.file("hangs"), works = temp.file("works"), log = temp.file("log");
  std::ofstream(hangs) << "#!/bin/sh\necho $3 >>" << log << "\nsleep 1000\n";
  std::ofstream(works) << "#!/bin/sh\nexit 0\n";
  for (const std::string& file : {hangs, works}) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  for (const char* name : {"rille-a-1", "rille-a-2", "rille-a-3"})
    REQUIRE(note_container(temp.path, name, {hangs, false}).ok());
  REQUIRE(note_container(temp.path, "rille-b", {works, false}).ok());
  CHECK(end_containers(temp.path, 2000).error().message.find("rille-a-") != std::string::npos);
  std::vector<std::string> begun;
  std::ifstream said(log);
  for (std::string line; std::getline(said, line);) begun.push_back(line);
  std::sort(begun.begin(), begun.end());
  CHECK(begun == std::vector<std::string>{"rille-a-1", "rille-a-2", "rille-a-3"});  // all had the same time
  CHECK(noted_containers(temp.path).size() == 3);
}
