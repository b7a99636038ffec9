// A web server that answers one request after another with the bytes that a fuzzer's input holds, parted by \x1e, and
// cuts the connection after each; further requests get nothing.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/net/scripted_server.hpp"

class ToldWeb {
 public:
  static constexpr int inputs_max = 100;  // then make a new one: a server keeps its threads until it ends

  std::string url(const std::string& path) const { return server_.url(path); }
  std::string host() const { return server_.host(); }
  void begin(std::string_view text) {
    std::lock_guard lock(mutex_);
    answers_.assign(1, "");
    asked_ = 0;
    for (const char c : text)
      if (c == '\x1e') answers_.emplace_back();
      else answers_.back() += c;
  }

 private:
  void serve(ScriptedServer::Wire& wire) {
    std::lock_guard lock(mutex_);
    if (asked_ < answers_.size()) wire.send(answers_[asked_]);
    ++asked_;
    wire.cut();
  }

  std::mutex mutex_;
  std::vector<std::string> answers_;
  std::size_t asked_ = 0;
  ScriptedServer server_{[this](const ScriptedServer::Request&, ScriptedServer::Wire& wire) { serve(wire); }};
};
