// Installs Rille's own bundle on an instance, once per instance and build. An instance that shares this machine's files
// (this machine itself, a cluster with a common home) uses the running program.
//
// Target: ~/.cache/rille/IDENTITY/ ($XDG_CACHE_HOME), unpacked next to it and renamed, so that it is complete or absent
// even if several runners install at once. The instance needs a POSIX shell, tar and gzip.
// Loop thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

struct InstallOptions {
  std::string self_exe;  // this program's path on this machine
  // As `rille agent install` prints it there: the build and its CUDA kernels. "": the build alone.
  std::string identity;
  std::string archive;  // a bundle of this build; "": as find_archive finds it
  std::string cache;    // folder in which this program's own bundle may be packed once
  std::function<void(std::int64_t sent_bytes, std::int64_t total_bytes)> progress;
};

// Returns the start of the agent's command there: {"/root/.cache/rille/0123456789abcdef/bin/rille", "agent"}.
// A program there is executed only if no user but this one and root can change it.
// network: the instance cannot be reached. config: it has no Rille, and there is no bundle of this build; or other
// users can change the folder that Rille would be installed in.
Async<std::vector<std::string>> install(Loop& loop, ChannelSpec channel, InstallOptions options,
                                        CancelToken token = {});

}  // namespace rille::agent
