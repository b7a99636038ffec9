// Replaces the host key that a machine got with its user data, which every program there can read through the metadata
// service, by one that only the machine knows: over the first verified connection, before any call has run. The steps
// and what a crash between them leaves: docs/design/providers.md. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

// `folder`: the folder of SshKeys. A channel without a file of known hosts in that folder is left alone, as is one
// whose key was replaced. A failure leaves the machine reachable: network: try again later.
Async<> renew_host_key(Loop& loop, ChannelSpec channel, std::string folder, CancelToken token);

}  // namespace rille::provider::cloud
