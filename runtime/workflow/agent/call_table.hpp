// CallTable: all calls of an agent, by key, and the fence. Loaded from D/calls at start: what has a result is done,
// what has a spec only is absent. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/workflow/agent/call.hpp"

namespace rille::agent {

class CallTable {
 public:
  static constexpr std::size_t calls_max = 4096, running_max = 256;

  explicit CallTable(Call::Site site) : site_(site) {}
  // io, integrity: what is damaged is named and left in place.
  Result<> load();

  // state: an older epoch or generation, or a limit. The call as it is when it runs or is done; one whose last attempt
  // was `after_attempt` is started anew.
  Result<std::shared_ptr<Call>> start(CallRecord record, int after_attempt = 0, const Value& secrets = {});
  std::shared_ptr<Call> find(const std::string& key) const;  // null when there is none
  Result<> acknowledge(const std::string& key);              // state: it still runs

  // Cancels it when it runs; forgets it when it is done, now or then.
  Result<> forget(const std::string& key, const std::string& reason);

  // The machine will be taken away: told to all calls that run, and to those that start before then.
  void notice(std::int64_t deadline_wall_us);

  std::size_t running() const { return count(CallState::running); }
  std::size_t unfetched() const { return count(CallState::done); }
  Value list() const;  // {{key, state}..}

 private:
  std::size_t count(CallState state) const;
  Result<> pass_fence(const CallRecord& record);

  Call::Site site_;
  std::map<std::string, std::shared_ptr<Call>> calls_;
  std::int64_t epoch_ = 0, generation_ = 0, notice_us_ = 0;
};

}  // namespace rille::agent
