// An object on a scripted server, and an instance directory that it is pulled into.
#pragma once

#include <map>
#include <string>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/agent/pull.hpp"
#include "tests/unit/agent/fixture.hpp"
#include "tests/unit/net/scripted_server.hpp"

// An object of eleven parts on a server that keeps to the rules, and agents that pull it.
struct PullFixture : AgentFixture {
  static constexpr std::int64_t part_bytes = 10'000;
  std::string content = noise(105'000), etag = "\"v1\"";
  rille::agent::PullRequest request;
  rille::net::Headers headers;
  std::int64_t expires_in_ms = 0, told_bytes = -1;

  PullFixture() {
    ::setenv("NO_PROXY", "127.0.0.1", 1);
    request.path = "data/file", request.key = "source";
    request.size_bytes = static_cast<std::int64_t>(content.size());
    request.version = etag, request.part_bytes = part_bytes;
  }
  static std::string noise(std::size_t size) {
    std::string out(size, '\0');
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 2654435761u >> 13);
    return out;
  }
  std::string sha() const { return rille::sha256_hex(content); }
  std::string file(const std::string& name = "data/file") const { return directory + "/work/" + name; }

  void serve(const ScriptedServer::Request& r, ScriptedServer::Wire& w) const {
    const std::string tag = "ETag: " + etag + "\r\n", range = r.header("range");
    if (!r.header("if-match").empty() && r.header("if-match") != etag) return w.answer(412, "");
    if (!etag.empty() && r.header("if-none-match") == etag) return w.answer(304, "", tag);
    if (range.empty()) return w.answer(200, content, tag);
    const std::size_t from = std::stoul(range.substr(6)), to = std::stoul(range.substr(range.find('-') + 1));
    if (from >= content.size())
      return w.answer(416, "", "Content-Range: bytes */" + std::to_string(content.size()) + "\r\n");
    const std::string piece = content.substr(from, to - from + 1);
    w.answer(206, piece,
             tag + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(from + piece.size() - 1) +
                 "/" + std::to_string(content.size()) + "\r\n");
  }
  ScriptedServer::Handler honest() {
    return [this](const ScriptedServer::Request& r, ScriptedServer::Wire& w) { serve(r, w); };
  }

  std::shared_ptr<rille::agent::Puller> puller(const std::string& where = "") {
    rille::net::Retry once;
    once.attempts = 1, once.base_ms = 1;
    return std::make_shared<rille::agent::Puller>(*loop, where.empty() ? directory : where, once);
  }
  rille::agent::PullOrder order(const std::string& url) const {
    rille::agent::PullOrder out;
    out.request = request, out.url = url, out.headers = headers, out.expires_in_ms = expires_in_ms;
    return out;
  }
  rille::Result<rille::agent::Pulled> pull(const std::string& url, std::shared_ptr<rille::agent::Puller> by = {}) {
    if (!by) by = puller();
    auto pulled = wait(
        rille::agent::Puller::pull(by, order(url), [this](std::int64_t done, std::int64_t) { told_bytes = done; }, {}));
    wait(finish(by));
    return pulled;
  }
  // Waits until the cache is filled: until the source's lock is free.
  static rille::Task<bool> finish(std::shared_ptr<rille::agent::Puller> by) {
    co_await rille::agent::Puller::close(by);
    co_return true;
  }
  bool left_over() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/work"))
      if (entry.path().string().find(".pull-") != std::string::npos) return true;
    return false;
  }
  // How often each range was asked for.
  static std::map<std::string, int> ranges(ScriptedServer& server) {
    std::map<std::string, int> out;
    for (const ScriptedServer::Request& r : server.requests()) ++out[r.header("range")];
    return out;
  }
  std::string note_path() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/work"))
      if (entry.path().string().ends_with(".note")) return entry.path().string();
    return {};
  }
  std::string states() const {
    const std::string note = note_path(), text = note.empty() ? "" : read(note);
    return text.substr(text.find('\n') + 1);
  }
};
