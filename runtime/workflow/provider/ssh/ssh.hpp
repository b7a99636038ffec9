// The provider of hosts that you own, reached by OpenSSH: the `ssh` command, with your keys, agent and ~/.ssh/config. A
// machine is a directory on a host; a host has room for `slots` machines. The directory contains the tag from its
// creation on. A host needs a POSIX shell with flock, /proc, tar and gzip; root is not needed.
// docs/manual/providers/ssh.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// setup.settings: see read_ssh_hosts. Error config: a wrong setting.
Result<std::unique_ptr<Provider>> make_ssh_provider(Setup setup);

// silence_ms is set since an attempt to reach an unreachable host takes 15 s.
inline constexpr Manner ssh_manner{.silence_ms = 60'000};

}  // namespace rille::provider
