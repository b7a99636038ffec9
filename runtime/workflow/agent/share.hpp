// Share: an object that the machines of a run pass on to each other, as seen by one of them: which parts are on this
// machine, in which file, and the digests that the runner has sent. A pull makes it. It ends when that pull fails, when
// the runner's channel ends, or when newer shares need its place. The rules: docs/design/agent.md, "Passing on".
// Loop thread only, except read_part(), which blocks and runs on the thread pool.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

inline constexpr std::size_t share_parts_max = 1 << 16;  // larger objects are not passed on
inline constexpr std::size_t digest_bytes = 32;          // of SHA-256

// Digests of parts in one string: u32 index, little endian, then the digest, for each.
using PartDigests = std::map<std::size_t, std::string>;
std::string encode_digests(const PartDigests& digests);
Result<PartDigests> digests_from(std::string_view text);  // integrity: not such a string

class Share {
 public:
  Share(Loop& loop, std::string id, std::string key, std::int64_t part_bytes)
      : loop_(loop), id_(std::move(id)), key_(std::move(key)), part_bytes_(part_bytes) {}
  const std::string& id() const { return id_; }
  const std::string& key() const { return key_; }  // secret
  std::int64_t part_bytes() const { return part_bytes_; }

  // Called by the pull. begin: the object's size (-1: unknown), and the file that its parts are written to; again: the
  // file has parts of an earlier pull.
  void begin(std::int64_t size_bytes, std::string part_file, bool again);
  void have(std::size_t part);
  void took() { took_ = true; }  // a part from another machine
  bool has_taken() const { return took_; }
  void got(std::int64_t bytes) { got_bytes_ = bytes; }
  void whole(std::int64_t size_bytes, std::string file);  // the complete object, until a program changes the file
  void whole_copy(std::string file) { copy_ = std::move(file); }  // the same in the cache, where no program changes it
  void end();                                                     // the pull has failed
  void tell_object(std::int64_t size_bytes, const std::string& version);  // from the server's first answer

  // Called when the runner sends digests.
  void tell(const PartDigests& digests);
  void dispute();  // machines have told different digests: what came from machines may be false
  bool disputed() const { return disputed_; }
  // "": not told.
  std::string digest(std::size_t part) const;

  // For the requests of other machines.
  bool ended() const { return ended_; }
  bool here(std::size_t part) const { return whole_ || (part < have_.size() && have_[part]); }
  bool is_part(std::int64_t begin, std::int64_t end) const;  // whether these bytes are one part of it
  std::int64_t got_bytes() const { return got_bytes_; }
  struct Part {
    std::string bytes, digest;
  };
  // Where a part that is here may be read; to be tried in order.
  struct Place {
    std::string file;
    std::optional<struct stat> as;  // only as long as the file is like that
  };
  std::vector<Place> places() const;
  // io: in none of the places.
  static Result<Part> read_part(const std::vector<Place>& places, std::int64_t begin, std::int64_t end);
  // Tells the runner the digest of a part that is here, unless both know it already.
  void report(std::size_t part, const std::string& digest);
  std::function<void(Value)> to_runner;  // {share, part, sha256} or {share, size, version}

  // Waits until anything of it changes, for wait_ms at most.
  static Async<> change(std::shared_ptr<Share> self, std::int64_t wait_ms, CancelToken token);

 private:
  void send(std::size_t part, const std::string& digest) const;
  void changed();

  Loop& loop_;
  std::string id_, key_;
  std::int64_t part_bytes_, size_bytes_ = -1, got_bytes_ = 0;
  std::string part_file_, file_, copy_;
  std::optional<struct stat> stamp_;
  std::vector<bool> have_;
  bool whole_ = false, ended_ = false, disputed_ = false, took_ = false;
  PartDigests digests_, own_;  // told by the runner; found here
  std::vector<Future<Result<>>> waiting_;
};

}  // namespace rille::agent
