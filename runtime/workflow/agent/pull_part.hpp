// PullPart: the file into which a pull writes, ".NAME.pull-HASH" beside its destination, and the note
// ".NAME.pull-HASH.note" that says what of it is there. HASH is derived from the source's key.
// The note is one line of JSON (the object, the size of a part, the boot id), then one character per part: '0' not
// there, '1' written since this boot, '2' also synced to the disk. A character is written in place, after the bytes
// that it claims: '1' outlives a killed agent, '2' also a power cut, after which '1' counts as '0'. So no state of the
// note claims a part that is not there. An object of one part has no note. Loop thread, except digest(), sync() and
// start_writing() .. rename_into_place(), which block and run on the thread pool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/store/file.hpp"

namespace rille::agent {

struct PullObject {
  std::string key;
  std::string version;    // as the runner named it; "": the validator is the version
  std::string validator;  // the server's ETag or date; "": none yet
  std::int64_t size_bytes = -1, part_bytes = 0;

  std::size_t parts() const {
    return size_bytes <= 0 ? 1 : static_cast<std::size_t>((size_bytes + part_bytes - 1) / part_bytes);
  }
};

class PullPart {
 public:
  static constexpr std::size_t parts_max = 1 << 20;

  PullPart(std::string destination, const std::string& key);

  // Continues what an earlier pull left of this object, whose size, version and validator may be open; completes them.
  // False: nothing that fits is there.
  bool resume(PullObject& object);
  // Starts from nothing and reserves the disk space, if the size is known. quota, code disk_full.
  Result<> begin(const PullObject& object);
  Result<> check_room(std::int64_t size_bytes) const;  // quota, code disk_full
  Result<> write(std::int64_t offset, std::string_view bytes) const;
  Result<> end_at(std::int64_t size_bytes) const;  // for an object whose size is known only at its end
  void mark(std::size_t part);                     // the part's bytes are written
  std::vector<std::size_t> missing() const;
  Result<std::string> digest(std::int64_t begin, std::int64_t end) const;  // SHA-256 of bytes that are there; blocks

  Result<> sync(const std::vector<std::size_t>& marked) const;  // syncs the file, then notes these parts as synced
  void start_writing();  // begins to write to the disk what sync_whole() waits for
  Result<> sync_whole();
  Result<> rename_into_place();  // the caller syncs the destination's folder
  void discard();

  const std::string& path() const { return path_; }
  const std::string& destination() const { return destination_; }

 private:
  Result<> write_note(const PullObject& object);
  Error disk_error(std::int64_t bytes, int errno_value) const;

  std::string destination_, path_, note_path_;
  store::Fd fd_, note_;
  std::int64_t states_at_ = 0;
  std::string states_;
};

}  // namespace rille::agent
