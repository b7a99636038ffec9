// Unpacks an archive from outside: tar, also compressed with gzip, xz, bzip2, zstd or lz4; zip; or one file that is
// compressed in one of these ways (NAME.zst becomes NAME). The archive's bytes are hostile:
// - Everything is written beneath the folder; no link there is followed. A symbolic link is made only if it is relative
//   and has ".." at its beginning only, no more often than there are folders above it. Such links cannot lead out of
//   the folder, not even through each other. A hard link becomes a copy. Devices, pipes and sockets are refused.
// - Files get mode 0644, or 0755 if the archive says that they can be executed; no owner, time or attribute is kept.
// - A later entry replaces an earlier one of the same name, and files that were there before. It never writes into
// them.
// - The file system keeps 64 MiB free. `room` is asked before bytes are written, and for 4 KiB before a folder is made.
// Every checksum of the archive is compared. After a failure the folder holds what was unpacked before, without the
// file that failed. Blocks; any thread. Only one call at a time unpacks into a folder: others wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/core/base/use.hpp"

namespace rille::store {

inline constexpr std::int64_t unpacked_entries_max = 10'000'000;  // in the archive; also of folders that are made

struct Unpacked {
  std::int64_t files = 0, size_bytes = 0;  // files: all but folders
};

// `invalid`: the file is no archive of these kinds, is encrypted, or holds a device, pipe or socket. `integrity`: it is
// damaged, or a name or link leads out of the folder. `quota`, code disk_full: the disk has no room; code
// unpacked_entries: there are more than unpacked_entries_max. `cancelled`: `stop` was set. Else those of `room`, or io.
Result<Unpacked> unpack(const std::string& archive, const std::string& folder, const std::atomic<bool>& stop,
                        const Room& room = {});

// Loads the locale C.UTF-8, which names in UTF-8 need (zip has them); of this machine or of Rille's bundle. A program
// in a bundle calls it before it has threads, since it sets LOCPATH for the moment; unpack() finds only the machine's.
void load_archive_locale();

}  // namespace rille::store
