// ChannelSpec: how to reach an instance's agent. A channel is a command prefix whose standard input and output carry
// the agent's protocol: empty for this machine, `ssh host`, `srun --overlap --jobid=7`, `kubectl exec -i pod --`.
// A provider makes the ChannelSpec, the journal stores it, and the agent's client uses it. It holds no secrets.
// InstanceFile: what an agent needs to know about its machine, at `<directory>/machine.json`. The local provider, a
// cloud's first-boot script or the bootstrap over ssh writes that file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille {

struct ChannelSpec {
  std::vector<std::string> argv_prefix;  // empty: the command runs on this machine
  std::string directory;                 // absolute path of the instance's directory, on the instance
  // Pass the command as one argument quoted for a POSIX shell, because ssh joins its arguments and runs them in a
  // shell.
  bool quoted = false;

  // argv_prefix followed by words, as one argv
  std::vector<std::string> command(const std::vector<std::string>& words) const;
  Value to_value() const;
  static Result<ChannelSpec> from_value(const Value& value);  // error `invalid`: names the wrong field
  friend bool operator==(const ChannelSpec&, const ChannelSpec&) = default;
};

std::string shell_quote(const std::string& word);

// Every process of an instance has this variable in its environment, set to the instance's directory. Termination finds
// processes by it, even those that left the session and lost their parent.
inline constexpr const char* instance_environment = "RILLE_INSTANCE";

struct InstanceFile {
  static constexpr const char* name = "machine.json";
  std::string id;
  std::int64_t expires_wall_us = 0;  // the instance ends at this wall-clock time, in microseconds; 0: never
  // the instance ends after this time with no runner, call or unfetched result
  std::int64_t orphan_after_ms = 30 * 60 * 1000;
  std::int64_t idle_after_ms = 0;  // the instance ends after this time unused, even with a runner connected; 0: never
  double idle_below = 0.05;        // counts as unused: no call runs and the load, from 0 to 1, is at most this
  std::vector<std::string> end;    // argv that the agent executes when the instance ends; empty: none
  bool keeps_files = false;        // do not delete the files in the directory when the instance ends
  bool terminating = false;        // the instance is being terminated: no agent may start on it any more

  static Result<InstanceFile> from_value(const Value& value);
};

}  // namespace rille
