// The hosts of the provider `ssh`, from its settings. A plain value; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::provider {

struct SshHost {
  std::string name;       // in offers and ids
  std::string address;    // user@host, or a Host of ~/.ssh/config
  int port = 0;           // 0: from ssh's configuration
  std::string identity;   // a private key file; "": from ssh's configuration
  std::string directory;  // parent of the instance directories; "": ~/.local/state/rille/rented
  std::string region;
  std::vector<std::string> options;  // further arguments of ssh
  int slots = 1;                     // maximum number of instances
  Micros price_micros_per_hour = 0;  // assumed price

  // The ssh command line up to the remote command.
  std::vector<std::string> prefix() const;
};

// `settings`: {"hosts": ["user@gpu1", {"address": "gpu2", "name": .., "port": .., "identity": .., "directory": ..,
// "region": .., "slots": 2, "price": 1.25}], "options": ["-o", ".."]}; price in dollars per hour.
// config: names the host and the field.
Result<std::vector<SshHost>> read_ssh_hosts(const Value& settings);

}  // namespace rille::provider
