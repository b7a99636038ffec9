// Staging: a file or directory, from the web or from this machine, checked and put at its destination.
// A web file is fetched into "<destination>.part" beside a small "<destination>.part.json" that says which
// version of which URL the part belongs to; a later call goes on where it stopped when the server still has
// that version (If-Range with a strong ETag or the date), and starts again otherwise. The finished file is
// synced and renamed into place. With a cache directory, files are also kept there by their SHA-256, with a
// note per URL of its version. A file whose expected digest is there needs no network; otherwise the server
// is asked whether the version is still the same (If-None-Match). Cached bytes are copied, never linked, so
// that editing a staged file harms no other, and checked on the way. Caches are shared by processes and
// bounded; what has not been used for longest goes first. Two processes may not fetch to one destination at a
// time (state). Errors: those of net/http.hpp; state for a web file that is not there; auth; io; integrity
// when the expected SHA-256 differs (both are named, and nothing is left at the destination); invalid for a
// source of another kind. Loop thread; disks are written there, digests of whole files are taken on the
// thread pool.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::transfer {

struct Progress {
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = -1;  // -1: not known
  double bytes_per_second = 0;    // over this call
};

struct StageOptions {
  std::string sha256;           // 64 hexadecimal digits the file must have; "": not checked. Files only.
  std::string cache_directory;  // "": no cache
  std::int64_t cache_bytes_max = std::int64_t{100} << 30;
  net::Headers headers;             // for the server: credentials
  int resumes_max = 8;              // times in a row that a cut transfer is taken up again without a byte of progress
  std::int64_t size_bytes_max = 0;  // of a web file; 0: no limit. network, naming the limit
  std::int64_t stall_timeout_ms = 60'000;
  net::Retry retry;
  std::function<void(const Progress&)> progress;  // on the loop thread, about ten times a second, and at the end
};

struct Staged {
  std::string path;             // the destination
  std::int64_t size_bytes = 0;  // of all files
  std::string sha256;           // "" for a directory
  std::string version;          // ETag or date; "" when the server gave none and for local sources
  bool from_cache = false;
  std::int64_t resumed_at_bytes = 0;  // where the first request of this call went on; 0: from the start
};

// `source`: http(s)://..., file://..., or a path. A directory's tree is copied, each file whole; its links
// are followed only to files. `destination` is the file or directory to make; its parent is made when
// missing.
Async<Staged> stage(net::HttpClient& client, std::string source, std::string destination, StageOptions options,
                    CancelToken token = {});

// invalid: the local source is a pipe, a socket or a device, which nothing could copy to its end. One that is not there
// passes: to open it says so.
Result<> check_ends(const std::string& source);

}  // namespace rille::transfer
