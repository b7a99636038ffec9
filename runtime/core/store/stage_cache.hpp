// StageCache: fetched files by their SHA-256, and the known version per source, in a folder that processes share. The
// least recently used files are removed first. With directory "" it stores and finds nothing. Any thread; these calls
// block.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/core/base/use.hpp"

namespace rille::store {

class StageCache {
 public:
  struct Known {
    std::string version, sha256;
  };
  StageCache(std::string directory, std::int64_t bytes_max, Room room)
      : directory_(std::move(directory)), bytes_max_(bytes_max), room_(std::move(room)) {}
  // The same cache with another limit. What is known of its size is shared, so that not every file lists the folder.
  StageCache with_bytes_max(std::int64_t bytes_max) const;
  std::string file_of(const std::string& sha256) const;     // the file's path, or "" if not cached
  std::optional<Known> find(const std::string& key) const;  // the cached version of a source whose file exists
  // Copies `file` into the cache and notes the version. The caller ignores a failure such as a full disk.
  Result<> put(const std::string& file, const std::string& key, const Known& known) const;
  // For a caller that copies by itself: makes room and returns the path to rename the file to; "": the file is larger
  // than the cache may be.
  Result<std::string> place_for(const std::string& sha256, std::int64_t size_bytes) const;
  // Notes the version of a source whose file is there. Not synced: what a power cut takes is fetched again.
  Result<> note(const std::string& key, const Known& known) const;
  void drop(const std::string& sha256) const;  // removes a damaged file

 private:
  // How much the folder holds, as of the last look at it and with what was added since by this process.
  struct Tally {
    std::mutex mutex;
    std::int64_t bytes = -1, looked_ns = 0;
  };
  void make_room(std::int64_t bytes) const;
  std::int64_t remove_oldest(std::int64_t bytes) const;
  Result<> ask_room(std::int64_t bytes) const;
  std::string directory_;
  std::int64_t bytes_max_;
  Room room_;
  std::shared_ptr<Tally> tally_ = std::make_shared<Tally>();
};

}  // namespace rille::store
