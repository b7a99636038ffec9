// Installs Rille's own bundle on an instance, once per instance and build. An instance that shares this machine's files
// (this machine itself, a cluster with a common home) uses the running program.
//
// The bundle is installed in ~/.cache/rille/IDENTITY/ ($XDG_CACHE_HOME). It is unpacked next to that folder and then
// renamed, so that the folder is complete or absent even if several runners install at once. The instance needs a POSIX
// shell, tar, gzip, sed, find and sha256sum. Nothing of the bundle is executed there before each file has the SHA-256
// that the manifest names, and the manifest is the one that was read here. Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/signed_bundle.hpp"

namespace rille::agent {

// The code of an error that another try on the same instance would meet again: the bundle, or the instance, does not
// fit.
inline constexpr const char* not_installed = "not_installed";

struct InstallOptions {
  std::string self_exe;  // this program's path on this machine
  // Identifies the build and its CUDA kernels, as the installed program's `rille agent install` prints it. "": only the
  // build must match.
  std::string identity;
  std::string archive;           // the bundle's archive; "": $RILLE_BUNDLE, or an archive next to this program
  std::string cache;             // folder in which this program's own bundle may be packed once; notes what was sent
  std::vector<ReleaseKey> keys;  // if there are any, one of them must have signed the bundle
  std::function<void(std::int64_t sent_bytes, std::int64_t total_bytes)> progress;
};

// Returns the beginning of the agent's command on the instance, such as
// {"/root/.cache/rille/0123456789abcdef/bin/rille", "agent"}. Fails with `network` if the instance cannot be reached,
// and with `config` if the instance has no Rille and no bundle of this build was found, or if other users can change
// the folder that Rille would be installed in; with `integrity` if the bundle is damaged, was altered, or lacks the
// signature of one of the keys. A program there is executed only if no user but this one and root can
// change it, and if it is the runner's own program, byte for byte, or if each file of its bundle is as the manifest
// says that the runner would send or has sent.
Async<std::vector<std::string>> install(Loop& loop, ChannelSpec channel, InstallOptions options,
                                        CancelToken token = {});

}  // namespace rille::agent
