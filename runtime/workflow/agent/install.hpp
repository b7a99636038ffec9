// Brings Rille onto an instance that has none: its own bundle, once per instance and build. An instance that sees this
// machine's files (this machine itself, a cluster with a common home) uses the program that runs here.
//
// There: ~/.cache/rille/IDENTITY/ ($XDG_CACHE_HOME), unpacked beside its place and renamed, so that it is there whole
// or not at all, also when several runners bring it at once. It needs a POSIX shell, tar and gzip there.
// Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

struct InstallOptions {
  std::string self_exe;  // this program, as this machine names it
  // What `rille agent install` says there: the build and its CUDA kernels. "": the build alone.
  std::string identity;
  std::string archive;  // a bundle of this build; "": the one that find_archive finds
  std::string cache;    // where this program's own bundle may be packed once, to be sent
  std::function<void(std::int64_t sent_bytes, std::int64_t total_bytes)> progress;
};

// The words that begin a command of the agent there: {"/root/.cache/rille/0123456789abcdef/bin/rille", "agent"}.
// network: the instance is not reached. config: it has no Rille, and there is no bundle of this build to bring.
Async<std::vector<std::string>> install(Loop& loop, ChannelSpec channel, InstallOptions options,
                                        CancelToken token = {});

}  // namespace rille::agent
