// CallTable: all calls of an agent by key, and the fence. Loaded from D/calls at start: a call with a result is done, a
// call with only a spec is absent. Loop thread only.
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
  // io, integrity: the error names the damaged file, which is left in place.
  Result<> load();

  // Returns a call that runs or is done unchanged; one that is done is started again if its last attempt was
  // `after_attempt`. state: an older epoch or generation, or a limit.
  Result<std::shared_ptr<Call>> start(CallRecord record, int after_attempt = 0, const Value& secrets = {});
  std::shared_ptr<Call> find(const std::string& key) const;  // null: no such call
  Result<> acknowledge(const std::string& key);              // state: the call still runs

  // Cancels the call if it runs, and forgets it once it is done.
  Result<> forget(const std::string& key, const std::string& reason);

  // Tells every running call, and every call that starts before the deadline, that the machine will be taken away.
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
