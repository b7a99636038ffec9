// The hosts that the settings of the provider `ssh` list. A plain value; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/money.hpp"

namespace rille::provider {

struct SshHost {
  std::string name;       // the host's name in offer ids and machine ids
  std::string address;    // user@host, or a Host entry of ~/.ssh/config
  int port = 0;           // 0: the port in ssh's configuration
  std::string identity;   // a private key file; "": the key in ssh's configuration
  std::string directory;  // parent of the instance directories; "": ~/.local/state/rille/rented
  std::string region;
  std::vector<std::string> options;  // further arguments of ssh
  int slots = 1;                     // maximum number of instances at one time
  Micros price_micros_per_hour = 0;  // the price from the settings, for estimates; hosts send no bills

  // The ssh command and arguments, to which the remote command is appended.
  std::vector<std::string> prefix() const;
};

// Reads the hosts from `settings`: {"hosts": ["user@gpu1", {"address": "gpu2", "name": .., "port": .., "identity": ..,
// "directory": .., "region": .., "slots": 2, "price": 1.25}], "options": ["-o", ".."]}; price in dollars per hour.
// Error config: names the wrong host and field.
Result<std::vector<SshHost>> read_ssh_hosts(const Value& settings);

}  // namespace rille::provider
