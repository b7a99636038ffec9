#include "runtime/workflow/agent/call_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace rille::agent {

namespace fs = std::filesystem;

Result<> CallTable::load() {
  const std::string& home = site_.options.directory;
  RILLE_CHECK(store::make_directories(home + "/calls"));
  std::error_code error;
  std::vector<std::string> directories;
  for (fs::directory_iterator it(home + "/calls", error), end; !error && it != end; it.increment(error))
    directories.push_back(it->path());
  if (error) return errno_error("list", home + "/calls", error.value());
  for (const std::string& directory : directories) {
    CallFiles files(directory);
    if (!fs::exists(directory + "/spec.json")) {
      RILLE_CHECK(files.remove());
      continue;
    }
    RILLE_TRY(CallRecord record, files.load());
    std::string key = record.key;
    calls_[key] = std::make_shared<Call>(site_, std::move(record), std::move(files));
  }
  return {};
}

Result<std::shared_ptr<Call>> CallTable::start(CallRecord record, int after_attempt, const Value& secrets) {
  if (record.key.empty() || record.key.size() > 4096)
    return make_error(ErrorKind::invalid, "the key of a call must have 1 to 4096 bytes");
  std::shared_ptr<Call> call = find(record.key);
  bool again = call && call->state() == CallState::done && after_attempt > 0 && call->record().attempt == after_attempt;
  if (call && call->state() != CallState::absent && !again) return call;
  if (running() >= running_max)
    return make_error(ErrorKind::state,
                      fmt::format("{} calls run on this instance already, the limit running_max", running_max))
        .with_retry();
  if (!call) {
    if (calls_.size() >= calls_max)
      return make_error(
          ErrorKind::state,
          fmt::format("the instance keeps the records of {} calls already, the limit calls_max", calls_max),
          "acknowledge the calls that are done, which removes their records");
    CallFiles files(site_.options.directory + "/calls/" + call_id(record.key));
    CallRecord empty;
    call = std::make_shared<Call>(site_, std::move(empty), std::move(files));
  }
  std::string key = record.key;
  RILLE_CHECK(call->start(std::move(record), secrets));
  calls_[key] = call;
  if (notice_us_ > site_.loop.clock().wall_us()) call->preempting(notice_us_, false);
  return call;
}

void CallTable::notice(std::int64_t deadline_wall_us) {
  if (deadline_wall_us == notice_us_ || deadline_wall_us <= site_.loop.clock().wall_us()) return;
  notice_us_ = deadline_wall_us;
  for (const auto& [key, call] : calls_) call->preempting(notice_us_, false);
}

std::shared_ptr<Call> CallTable::find(const std::string& key) const {
  auto it = calls_.find(key);
  return it == calls_.end() ? nullptr : it->second;
}

Result<> CallTable::acknowledge(const std::string& key) {
  std::shared_ptr<Call> call = find(key);
  if (!call) return {};
  if (call->state() == CallState::running)
    return make_error(ErrorKind::state, "'" + key + "' still runs: there is no result to acknowledge",
                      "cancel it first");
  RILLE_CHECK(call->files().remove());
  calls_.erase(key);
  return {};
}

Result<> CallTable::forget(const std::string& key, const std::string& reason) {
  std::shared_ptr<Call> call = find(key);
  if (!call || call->state() != CallState::running) return acknowledge(key);
  call->when_done([this, key] { acknowledge(key).ok(); });
  call->cancel(make_error(ErrorKind::cancelled, reason.empty() ? "cancelled" : reason));
  return {};
}

void CallTable::add_metrics(std::string_view lines) {
  const auto runs = [](const auto& call) { return call.second->state() == CallState::running; };
  if (const auto it = std::find_if(calls_.begin(), calls_.end(), runs); it != calls_.end())
    it->second->add_metrics(lines);
}

std::size_t CallTable::count(CallState state) const {
  std::size_t n = 0;
  for (const auto& [key, call] : calls_) n += call->state() == state;
  return n;
}

Value CallTable::list() const {
  Value::Array out;
  for (const auto& [key, call] : calls_) {
    Value row;
    CallState state = call->state();
    row.set("key", key)
        .set("state", state == CallState::done      ? "done"
                      : state == CallState::running ? "running"
                                                    : "absent");
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace rille::agent
