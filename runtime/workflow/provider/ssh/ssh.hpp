// The provider of hosts that you own, reached by OpenSSH: the `ssh` command, with your keys, agent and ~/.ssh/config.
// What is "rented" is a slot of a host: a folder there, with the tag in it from its first instant. A host needs a POSIX
// shell with flock, /proc, tar and gzip; nothing is installed by root. docs/manual/providers/ssh.md.
#pragma once

#include <memory>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

// Settings: see read_ssh_hosts. config: they are wrong.
Result<std::unique_ptr<Provider>> make_ssh_provider(Setup setup);

// A host that is off says so after 15 s.
inline constexpr Manner ssh_manner{.silence_ms = 60'000};

}  // namespace rille::provider
