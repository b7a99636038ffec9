// CallTable: all calls of an agent by key. Loaded from D/calls at start: a call with a result is done, a call with only
// a spec is absent. Loop thread only.
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
  // Loads the calls from D/calls. Fails with `io` or `integrity`; the error names the damaged file, which stays.
  Result<> load();

  // Starts the call, or returns the call with this key if it runs or is done. A call that is done is started again if
  // its last attempt was `after_attempt`. Fails with `state` if the epoch or generation is older than one seen before,
  // or if a limit is reached.
  Result<std::shared_ptr<Call>> start(CallRecord record, int after_attempt = 0, const Value& secrets = {});
  std::shared_ptr<Call> find(const std::string& key) const;  // null: no such call
  Result<> acknowledge(const std::string& key);              // forgets a call that is done; `state` if it still runs

  // Cancels the call if it runs, and forgets it once it is done.
  Result<> forget(const std::string& key, const std::string& reason);

  // Tells every running call, and every call that starts before the deadline, that the machine will be taken away.
  void notice(std::int64_t deadline_wall_us);

  // Adds lines of metrics of the machine to those of a call that runs: the one of the lowest key.
  void add_metrics(std::string_view lines);

  std::size_t running() const { return count(CallState::running); }
  std::size_t unfetched() const { return count(CallState::done); }
  Value list() const;  // all calls, as {{key, state}..}

 private:
  std::size_t count(CallState state) const;

  Call::Site site_;
  std::map<std::string, std::shared_ptr<Call>> calls_;
  std::int64_t notice_us_ = 0;
};

}  // namespace rille::agent
