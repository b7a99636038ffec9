// An instance directory, a real agent in it, and the means to wait for what another process does.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "tests/unit/store/temp_dir.hpp"

struct AgentFixture {
  TempDir temp;
  std::unique_ptr<rille::Loop> loop = rille::Loop::create().value();
  std::vector<std::string> prefix;  // e.g. {"env", "NAME=value"}
  std::string directory, token = std::string(64, 'a');
  std::int64_t epoch = 1;  // of the runner that connects

  AgentFixture() {
    directory = temp.file("instance");
    std::filesystem::create_directories(directory + "/work");
    write(directory + "/machine.json", R"({"id":"i-test"})");
  }
  ~AgentFixture() { rille::kill_processes({{}, "RILLE_INSTANCE=" + directory, true}, 10'000).ok(); }

  static void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  template <class T>
  auto wait(rille::Task<T> task) {
    return rille::run_blocking(*loop, std::move(task));
  }

  // Waits for a condition of another process; gives up after a time that only a failure takes.
  bool eventually(const std::function<bool()>& condition) {
    auto poll = [](rille::Loop& l, const std::function<bool()>& met) -> rille::Task<bool> {
      for (int i = 0; i < 10'000; ++i) {
        if (met()) co_return true;
        (co_await rille::sleep_for(l, 2)).ok();
      }
      co_return false;
    };
    return wait(poll(*loop, condition));
  }

  rille::Result<std::unique_ptr<rille::agent::AgentClient>> try_connect(rille::agent::Heartbeat heartbeat = {}) {
    rille::ChannelSpec channel{prefix, directory};
    rille::agent::ClientOptions options;
    options.agent_argv = {AGENT_HELPER, "agent"};
    options.build = "test";
    options.heartbeat = heartbeat;
    options.token = token;
    options.epoch = epoch;
    return wait(rille::agent::AgentClient::connect(*loop, channel, options));
  }
  std::unique_ptr<rille::agent::AgentClient> connect() {
    auto client = try_connect();
    if (!client) FAIL(client.error().summary());
    return std::move(*client);
  }

  static rille::agent::StartRequest request(std::string key, const std::string& spec, std::int64_t epoch = 1,
                                            std::int64_t generation = 1) {
    return {std::move(key), generation, epoch, rille::Value::from_json(spec).value()};
  }
  // A worker that waits for `file()`.
  std::string file() const { return temp.file("go"); }
  std::string hold(const std::string& more = "") const {
    return R"({"do":"hold","value":42,"file":")" + file() + "\"" + more + "}";
  }
  void let_go() { write(file(), ""); }

  static bool alive(std::int64_t pid) { return rille::process_start_time(static_cast<pid_t>(pid)).has_value(); }
  std::vector<pid_t> processes() const { return rille::find_processes({{}, "RILLE_INSTANCE=" + directory, true}); }
};
