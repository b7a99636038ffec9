// ChannelSpec: how to reach an instance's agent. A channel is a command prefix whose standard input and output carry
// the agent's protocol: nothing for this machine, `ssh host`, `srun --overlap --jobid=7`, `kubectl exec -i pod --`.
// A provider makes it, the journal keeps it, the agent's client uses it: a plain value without secrets.
// InstanceFile: the few facts that an agent needs about the machine it lives on, at `<directory>/machine.json`, written
// by whoever made the machine (the local provider, a cloud's first-boot script, the bootstrap over ssh).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"

namespace rille {

struct ChannelSpec {
  std::vector<std::string> argv_prefix;  // empty: this machine
  std::string directory;                 // the instance's directory, absolute, on the instance
  // What follows the prefix is one word, quoted for a POSIX shell: ssh gives its words to one, joined by spaces.
  bool quoted = false;

  std::vector<std::string> command(const std::vector<std::string>& words) const;  // to be run there
  Value to_value() const;
  static Result<ChannelSpec> from_value(const Value& value);  // invalid: names the field
  friend bool operator==(const ChannelSpec&, const ChannelSpec&) = default;
};

// For a POSIX shell.
std::string shell_quote(const std::string& word);

// Every process of an instance has this in its environment, with the instance's directory as value, so that ending the
// instance finds whatever has left its session and lost its parent.
inline constexpr const char* instance_environment = "RILLE_INSTANCE";

struct InstanceFile {
  static constexpr const char* name = "machine.json";
  std::string id;
  std::int64_t expires_wall_us = 0;               // the dead man's switch; 0: none
  std::int64_t orphan_after_ms = 30 * 60 * 1000;  // how long without a runner, a running call or an unfetched result
  std::int64_t idle_after_ms = 0;                 // how long unused, whoever is connected; 0: for ever
  double idle_below = 0.05;                       // no busier than this is unused, if no call runs
  std::vector<std::string> end;                   // what the agent becomes once it has ended all here; empty: nothing
  bool keeps_files = false;                       // the folder's end would not be the machine's: leave what is in it
  bool terminating = false;                       // no agent may start here any more

  static Result<InstanceFile> from_value(const Value& value);
};

}  // namespace rille
