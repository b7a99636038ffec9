// The hosts of the provider `ssh`, as its settings name them. A plain value; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::provider {

struct SshHost {
  std::string name;       // in offers and ids
  std::string address;    // user@host, or a name of ~/.ssh/config
  int port = 0;           // 0: as ssh's own files say
  std::string identity;   // a private key's file; "": as ssh's own files say
  std::string directory;  // of its instances; "": ~/.local/state/rille/rented there
  std::string region;
  std::vector<std::string> options;  // more words for ssh
  int slots = 1;                     // how many instances at once
  Micros price_micros_per_hour = 0;  // what the owner wants it to count as

  // ssh with its options, up to the command.
  std::vector<std::string> prefix() const;
};

// `settings`: {"hosts": ["user@gpu1", {"address": "gpu2", "name": .., "port": .., "identity": .., "directory": ..,
// "region": .., "slots": 2, "price": 1.25}], "options": ["-o", ".."]}; price in dollars per hour.
// config: names the host and the field.
Result<std::vector<SshHost>> read_ssh_hosts(const Value& settings);

}  // namespace rille::provider
