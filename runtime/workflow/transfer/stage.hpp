// Staging: fetches a file from the web, or copies a local file or directory, verifies it and puts it at its
// destination. A web file is fetched into "<destination>.part" beside a small "<destination>.part.json" that records
// the URL and version of the part. A later call continues the part if the server still has that version (If-Range with
// a strong ETag or the date), and otherwise starts again. The finished file is synced and renamed into place. With a
// cache directory, files are also kept there by their SHA-256, with a note per URL of its version. A cached file with
// the expected digest needs no network; without one the server is asked whether the version is still current
// (If-None-Match). Cached bytes are copied, never linked, so that editing a staged file cannot change the cache, and
// are verified while copied. Caches are shared by processes and bounded; the least recently used files are removed
// first. Only one process at a time may fetch to a destination (state). Errors: those of net/http.hpp; invalid for a
// web file that does not exist and for other kinds of sources; auth; io; integrity when the SHA-256 differs from the
// expected one (the message names both, and nothing is left at the destination). Loop thread; disk writes happen there,
// digests of whole files on the thread pool.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/base/use.hpp"
#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::transfer {

struct Progress {
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = -1;  // -1: unknown
  double bytes_per_second = 0;    // average over this call
};

struct StageOptions {
  std::string sha256;           // the expected digest, 64 hexadecimal digits; "": not checked. Files only.
  std::string cache_directory;  // "": no cache
  std::int64_t cache_bytes_max = std::int64_t{100} << 30;
  // called before every connection, redirects included; null: all are allowed
  std::function<Result<>(const std::string& host, const std::string& port)> may_connect;
  net::Headers headers;             // HTTP request headers, such as credentials
  int resumes_max = 8;              // attempts in a row to continue a transfer without a byte of progress
  std::int64_t size_bytes_max = 0;  // of a web file; 0: no limit. Exceeding it is a network error that names the limit
  // asked before every write: of the part, its note, copies and the cache's files. An error ends the staging; the cache
  // only goes without the file. Any thread.
  Room room;
  std::int64_t stall_timeout_ms = 60'000;
  net::Retry retry;
  std::function<void(const Progress&)> progress;  // on the loop thread, about ten times a second, and at the end
};

struct Staged {
  std::string path;             // the destination
  std::int64_t size_bytes = 0;  // total size of all staged files
  std::string sha256;           // "" for a directory
  std::string version;          // the server's ETag or date; "": neither was sent, or a local source
  bool from_cache = false;
  std::int64_t resumed_at_bytes = 0;  // where the first request of this call continued; 0: from the start
};

// `source`: http(s)://..., file://..., or a path. A directory's tree is copied, each file atomically; symbolic links
// are followed only to files. `destination` is the file or directory to create; missing parents are created.
Async<Staged> stage(net::HttpClient& client, std::string source, std::string destination, StageOptions options,
                    CancelToken token = {});

// A hash of a web address without its signature: equal for the same object, however its address was signed.
std::string source_key(const std::string& url);

// An expected digest, in small letters. Error `invalid`: it is not 64 hexadecimal digits.
Result<std::string> read_sha256(std::string text);

// "file:///a%20b" and "file://localhost/a" -> the path; "" for other hosts.
std::string path_of_file_url(std::string_view url);

// invalid: the local source is a pipe, a socket or a device, which has no end. A missing source passes: opening it
// fails.
Result<> check_ends(const std::string& source);

}  // namespace rille::transfer
