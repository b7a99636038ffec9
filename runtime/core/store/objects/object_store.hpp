// ObjectStore: one bucket of an object store (S3 and what is compatible, OSS, COS, OBS, Google, Azure), asked over
// HTTPS with the keys that the cloud's own tools would use.
//
// Calls wait when the store throttles, repeat what a failure of the network or the store has cut off, correct a clock
// that is off, renew keys that have expired, and go to the bucket's region where the store tells it. Their errors name
// the object's address and never a secret:
//   state      http_status 404: no such object, bucket or upload. 412: the condition does not hold (is_refused)
//   auth       the keys are missing, wrong, expired, or not allowed to do this
//   integrity  the object changed while it was read, or is not of the version asked for
//   config     no region or endpoint is known
//   quota      throttled for longer than the calls wait
//   network, timeout, cancelled, invalid   as in net/http.hpp
// What a store answers is not trusted: sizes, names and depth are checked.
// Loop thread only. A store must outlive its calls; several calls may run at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"

namespace rille {
class Loop;
class Log;
class Value;
}  // namespace rille

namespace rille::objects {

struct ObjectUrl;

struct ObjectInfo {
  std::string key;
  std::int64_t size_bytes = 0;
  // The version of the bytes, as the store writes it: an ETag, of gs the generation. For if_match; not a digest.
  std::string version;
  std::int64_t modified_wall_us = 0;  // 0: the store did not tell
  std::string content_type;           // "" in lists
};

struct ListRequest {
  std::string prefix, delimiter;  // delimiter "": all keys that begin with prefix
  std::string token;              // next_token of the page before; "": the first page
  int count_max = 1000;           // objects and prefixes of a page; a store may return fewer
};
struct ListPage {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> prefixes;  // what keys have in common up to the delimiter, with prefix and delimiter
  std::string next_token;             // "": this is the last page
};

using Sink = std::function<Result<>(std::string_view piece)>;
struct GetRequest {
  std::int64_t offset = 0, length = -1;  // length -1: to the end. A range beyond the end is cut at the end
  std::string if_match;                  // read only this version; else error integrity
};

// The bytes of a put: in memory, or read piece by piece, from the start again when the call is repeated.
struct Body {
  std::string text;
  std::function<Result<>(std::uint64_t offset, char* out, std::size_t size)> read;
  std::int64_t size_bytes = 0;  // of `read`
  std::int64_t bytes() const { return read ? size_bytes : static_cast<std::int64_t>(text.size()); }
};
struct PutRequest {
  bool if_absent = false;  // only if there is no object of that key
  std::string if_match;    // only in place of this version
  std::string content_type;
};

struct Part {
  int number = 1;    // from 1
  std::string mark;  // what put_part returned
  std::int64_t size_bytes = 0;
};

// What a store can do. Limits are of the store's documents.
struct Traits {
  std::int64_t part_bytes_min = 5 << 20;  // the last part may be smaller
  std::int64_t part_bytes_max = std::int64_t{5} << 30;
  int parts_max = 10'000;
  std::int64_t put_bytes_max = std::int64_t{5} << 30;  // of one put
  bool puts_if_absent = true, puts_if_match = true;
  bool completes_if_absent = true, completes_if_match = true;
};

enum class Method { get, put };
struct PresignRequest {
  Method method = Method::get;
  std::string key;
  // Of a get: the address gives only this version. Signed for gs, where nothing else tells a generation; at the other
  // stores the request's If-Match does it, without a signature.
  std::string version;
  std::int64_t expires_s = 3600;
  std::string upload;  // with `part`: for put_part
  int part = 0;
};
struct Presigned {
  std::string url;                                           // secret until it expires
  std::vector<std::pair<std::string, std::string>> headers;  // that the request must carry
  std::int64_t expires_wall_us = 0;                          // earlier than asked where the keys expire earlier
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual Traits traits() const = 0;
  virtual std::string address(const std::string& key) const = 0;  // "s3://bucket/key"
  virtual std::string server() const = 0;                         // "https://bucket.s3.eu-west-1.amazonaws.com"

  virtual Async<ListPage> list(ListRequest request, CancelToken token) = 0;
  virtual Async<ObjectInfo> head(std::string key, CancelToken token) = 0;
  // Passes the bytes to `sink` in order. A transfer that is cut off goes on where it was, in the same version.
  virtual Async<ObjectInfo> get(std::string key, GetRequest request, Sink sink, CancelToken token) = 0;
  // Returns the new version. If a conditional put is refused (is_refused) after an attempt whose answer was lost, the
  // error says that this attempt may have written the object.
  virtual Async<std::string> put(std::string key, Body body, PutRequest request, CancelToken token) = 0;

  // An object in parts: begin returns the upload's name; parts are put in any order, at the same time, by anyone who
  // has a presigned address; complete makes the object, all at once, and returns its version.
  virtual Async<std::string> begin_parts(std::string key, std::string content_type, CancelToken token) = 0;
  virtual Async<Part> put_part(std::string key, std::string upload, int number, Body body, CancelToken token) = 0;
  virtual Async<std::string> complete_parts(std::string key, std::string upload, std::vector<Part> parts,
                                            PutRequest request, CancelToken token) = 0;
  virtual Async<> abort_parts(std::string key, std::string upload, CancelToken token) = 0;

  virtual Async<> remove(std::string key, CancelToken token) = 0;  // also succeeds if there is none
  // Error auth: the keys cannot sign addresses.
  virtual Async<Presigned> presign(PresignRequest request, CancelToken token) = 0;
};

inline bool is_missing(const Error& e) { return e.kind == ErrorKind::state && e.http_status == 404; }
inline bool is_refused(const Error& e) { return e.kind == ErrorKind::state && e.http_status == 412; }

// How stores are opened. Endpoints come from the address, else from the settings of the provider (aws, alibaba,
// tencent, huawei, gcp, azure) in providers.json, {"aws": {"endpoints": {"s3": ".."}}}, else from the variables of the
// cloud's own tools (AWS_ENDPOINT_URL_S3, STORAGE_EMULATOR_HOST, ..).
struct StoreSetup {
  Loop& loop;
  const Value& settings;  // the whole of providers.json; read at open only
  // called before every connection; null: all are allowed
  std::function<Result<>(const std::string& host, const std::string& port)> may_connect;
  std::int64_t wait_ms = 500;  // upper bound of the first wait before a repetition; doubles with each
  std::int64_t stall_timeout_ms = 60'000;
  const Log* log = nullptr;  // copied
};
// Errors `invalid` and `config`: the address, or no region is known. Keys are first looked for by the first call.
Result<std::unique_ptr<ObjectStore>> open_store(const ObjectUrl& url, const StoreSetup& setup);

// The provider whose keys the store at this address is asked with: "aws".
const char* provider_of(const ObjectUrl& url);

// Passes each page of a list to `each`. Error integrity: the store repeats a page's token, or does not come to an end.
Async<> list_all(ObjectStore& store, ListRequest request, std::function<Result<>(const ListPage&)> each,
                 CancelToken token);

}  // namespace rille::objects
