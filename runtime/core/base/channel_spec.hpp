// ChannelSpec: how to reach an instance's agent. A channel is a command prefix whose standard input and output carry
// the agent's protocol: empty for this machine, `ssh host`, `srun --overlap --jobid=7`, `kubectl exec -i pod --`.
// A provider makes it, the journal stores it, the agent's client uses it: a plain value without secrets.
// InstanceFile: what an agent needs to know about its machine, at `<directory>/machine.json`. The local provider,
// a cloud's first-boot script or the bootstrap over ssh writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille {

struct ChannelSpec {
  std::vector<std::string> argv_prefix;  // empty: this machine
  std::string directory;                 // the instance's directory, absolute, on the instance
  // Join the command into one word, quoted for a POSIX shell: ssh passes its words to a shell joined by spaces.
  bool quoted = false;

  std::vector<std::string> command(const std::vector<std::string>& words) const;  // prefix and words, as one argv
  Value to_value() const;
  static Result<ChannelSpec> from_value(const Value& value);  // invalid: names the field
  friend bool operator==(const ChannelSpec&, const ChannelSpec&) = default;
};

// Quotes a word for a POSIX shell.
std::string shell_quote(const std::string& word);

// Every process of an instance has this variable in its environment, set to the instance's directory. Termination finds
// processes by it, even those that left the session and lost their parent.
inline constexpr const char* instance_environment = "RILLE_INSTANCE";

struct InstanceFile {
  static constexpr const char* name = "machine.json";
  std::string id;
  std::int64_t expires_wall_us = 0;               // the dead man's switch: end at this time; 0: never
  std::int64_t orphan_after_ms = 30 * 60 * 1000;  // end after so long with no runner, running call or unfetched result
  std::int64_t idle_after_ms = 0;                 // end after so long unused, even with a runner connected; 0: never
  double idle_below = 0.05;                       // unused: no call runs and the load is at most this
  std::vector<std::string> end;                   // argv that the agent executes when it ends; empty: none
  bool keeps_files = false;                       // the directory outlives the machine: do not delete the files in it
  bool terminating = false;                       // no agent may start here any more

  static Result<InstanceFile> from_value(const Value& value);
};

}  // namespace rille
