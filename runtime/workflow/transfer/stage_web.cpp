// Web sources: a part file that survives interruptions, and the rules for continuing it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "runtime/core/base/text.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/net/content.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/workflow/transfer/stage_parts.hpp"

namespace rille::transfer {

namespace {

constexpr int restarts_max = 3;

// The note beside a part; null when it is missing or damaged.
Value read_note(const std::string& path) {
  auto text = store::read_file(path, 64 << 10);
  if (!text) return {};
  auto note = Value::from_json(*text);
  return note ? std::move(*note) : Value();
}

// The parameters by which an object store signs an address for a limited time; `proof` marks such an address.
struct Signing {
  std::string_view proof, prefix;
  std::set<std::string, std::less<>> names;
};
const Signing signings[] = {
    {"x-amz-signature", "x-amz-", {}},
    {"x-goog-signature", "x-goog-", {}},
    {"x-oss-signature", "x-oss-", {}},
    {"q-signature", "q-", {}},
    {"signature", "", {"signature", "expires", "awsaccesskeyid", "ossaccesskeyid", "accesskeyid", "googleaccessid"}},
    {"sig", "", {"sig", "se", "sp", "st", "sv", "sr", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv"}},
};

std::vector<std::pair<std::string, std::string_view>> parameters_of(std::string_view query) {
  std::vector<std::pair<std::string, std::string_view>> out;  // (name in lower case, whole parameter)
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    out.emplace_back(lower_case(one.substr(0, one.find('='))), one);
    query.remove_prefix(std::min(query.size(), one.size() + 1));
  }
  return out;
}

// The address without its signature: equal for the same object, however it was signed.
std::string without_signature(const std::string& url) {
  const std::size_t question = url.find('?');
  if (question == std::string::npos) return url;
  const auto parameters = parameters_of(std::string_view(url).substr(question + 1));
  std::string out = url.substr(0, question + 1);
  for (const auto& [name, whole] : parameters) {
    bool signs = false;
    for (const Signing& s : signings) {
      const bool used =
          std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == s.proof; });
      signs = signs || (used && (s.names.contains(name) || (!s.prefix.empty() && name.starts_with(s.prefix))));
    }
    if (!signs) out.append(whole) += '&';
  }
  return out;
}

// A fetch in progress: the part file, its note, and its position.
class Download {
 public:
  Download(const std::string& url, const std::string& destination, const StageOptions& options, Meter& meter)
      : url_(url), part_(destination + ".part"), note_(part_ + ".json"), key_(source_key(url)), options_(options),
        meter_(meter) {}
  ~Download() {
    // Keep only a part that can be continued. A part locked by another process is not removed.
    if (fd_.valid() && !finished_ && (done_ == 0 || version_.empty())) discard();
  }
  Download(const Download&) = delete;

  Result<> open();
  net::HttpRequest request(const store::StageCache::Known* cached);
  Result<> start_over();
  Result<> finish(const std::string& destination);  // call after checking the digest
  void discard() { ::unlink(part_.c_str()), ::unlink(note_.c_str()); }

  const std::string& key() const { return key_; }
  const std::string& part() const { return part_; }
  const std::string& version() const { return version_; }
  std::int64_t done() const { return done_; }
  bool complete() const { return total_ < 0 || done_ == total_; }
  bool must_start_over() const { return must_start_over_; }
  std::int64_t total() const { return total_; }

 private:
  Result<> lock();
  Result<> head(const net::HttpResponse& answer);
  Result<> piece(std::string_view bytes);
  Result<> expect(std::int64_t total);
  Result<> check_size(std::int64_t bytes) const;
  Result<> ask_room(std::size_t bytes) const;

  std::string url_, part_, note_, key_;
  StageOptions options_;
  Meter& meter_;
  store::Fd fd_;
  bool finished_ = false;
  std::string version_;
  std::int64_t done_ = 0, total_ = -1;
  bool must_start_over_ = false;
};

// Opens and locks the part file; retries if another process renamed the file meanwhile.
Result<> Download::lock() {
  for (int tries = 0; tries < 3; ++tries) {
    store::Fd fd(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd.valid()) return errno_error("cannot create", part_, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) break;
    struct stat held {
    }, named{};
    if (::fstat(fd.get(), &held) != 0) return errno_error("cannot look at", part_, errno);
    if (::stat(part_.c_str(), &named) != 0 || held.st_ino != named.st_ino) continue;
    fd_ = std::move(fd);
    done_ = held.st_size;
    return success();
  }
  return make_error(ErrorKind::state, fmt::format("another process is fetching to '{}'", part_),
                    "wait for it, or choose another destination");
}

Result<> Download::open() {
  RILLE_CHECK(lock());
  Value note = read_note(note_);
  // After a power cut a part may have the right length but wrong bytes; only an expected digest can detect that.
  bool sound = note.text("boot") == boot_id() || !options_.sha256.empty();
  if (note.text("url") != key_ || note.text("version").empty() || !sound) return start_over();
  version_ = note.text("version");
  meter_.at(done_);
  if (::lseek(fd_.get(), 0, SEEK_END) < 0) return errno_error("cannot seek in", part_, errno);
  return success();
}

Result<> Download::start_over() {
  must_start_over_ = false;
  done_ = 0, total_ = -1;
  version_.clear();
  meter_.at(0);
  ::unlink(note_.c_str());
  if (::ftruncate(fd_.get(), 0) != 0) return errno_error("cannot empty", part_, errno);
  if (::lseek(fd_.get(), 0, SEEK_SET) < 0) return errno_error("cannot seek in", part_, errno);
  return success();
}

net::HttpRequest Download::request(const store::StageCache::Known* cached) {
  net::HttpRequest request{.url = url_, .headers = options_.headers};
  request.stall_timeout_ms = options_.stall_timeout_ms;
  request.response_bytes_max = 0;
  request.retry = options_.retry;
  request.may_connect = options_.may_connect;
  request.prepare = [this, cached](net::HttpRequest& r) {
    if (done_ > 0 && !version_.empty()) {
      r.headers.emplace_back("Range", fmt::format("bytes={}-", done_));
      r.headers.emplace_back("If-Range", version_);
    } else if (done_ == 0 && cached) {
      bool tag = cached->version.starts_with('"');
      r.headers.emplace_back(tag ? "If-None-Match" : "If-Modified-Since", cached->version);
    }
    return success();
  };
  request.on_head = [this](const net::HttpResponse& answer) { return head(answer); };
  request.sink = [this](std::string_view bytes) { return piece(bytes); };
  return request;
}

Result<> Download::head(const net::HttpResponse& answer) {
  if (answer.status == 206) {
    auto [from, total] = net::content_range(answer.header("content-range"));
    std::string version = net::strong_validator_of(answer);
    // A server may honour Range but ignore If-Range; that would append the tail of another version.
    must_start_over_ = from != done_ || (!version.empty() && version != version_);
    if (must_start_over_)
      return make_error(ErrorKind::integrity,
                        fmt::format("'{}' has changed while it was fetched", net::redact_url(url_)),
                        "fetched again from its beginning by itself");
    return expect(total);
  }
  if (answer.status != 200)
    return make_error(ErrorKind::network,
                      fmt::format("'{}' answers with status {} and no file", net::redact_url(url_), answer.status),
                      "use an address that answers with the file itself (status 200)");
  RILLE_CHECK(start_over());
  RILLE_CHECK(expect(net::size_in(answer.header("content-length"))));
  version_ = net::strong_validator_of(answer);
  if (version_.empty()) return success();  // the part has no version and cannot be continued: no note
  Value note;
  note.set("url", key_).set("version", version_).set("boot", boot_id());
  const std::string text = note.to_json();
  RILLE_CHECK(ask_room(text.size()));
  return store::write_file_atomic(note_, text);
}

Result<> Download::expect(std::int64_t total) {
  total_ = total;
  meter_.set_total(total);
  return check_size(total);
}

Result<> Download::check_size(std::int64_t bytes) const {
  if (options_.size_bytes_max <= 0 || bytes <= options_.size_bytes_max) return success();
  return make_error(ErrorKind::network,
                    fmt::format("'{}' is larger than the limit size_bytes_max of {}", net::redact_url(url_),
                                format_size_bytes(options_.size_bytes_max)),
                    "stage a smaller file, or raise that limit");
}

Result<> Download::ask_room(std::size_t bytes) const {
  return options_.room ? options_.room(static_cast<std::int64_t>(bytes)) : success();
}

Result<> Download::piece(std::string_view bytes) {
  RILLE_CHECK(check_size(done_ + static_cast<std::int64_t>(bytes.size())));
  RILLE_CHECK(ask_room(bytes.size()));
  RILLE_CHECK(store::write_all(fd_.get(), bytes, part_));
  done_ += static_cast<std::int64_t>(bytes.size());
  meter_.moved(static_cast<std::int64_t>(bytes.size()));
  return success();
}

Result<> Download::finish(const std::string& destination) {
  if (::fdatasync(fd_.get()) != 0) return errno_error("cannot sync", part_, errno);
  if (::rename(part_.c_str(), destination.c_str()) != 0)
    return errno_error("cannot rename into place", destination, errno);
  finished_ = true;
  ::unlink(note_.c_str());
  return store::sync_directory(store::parent_path(destination));
}

// Fetches the rest of the part, despite interruptions. `not_modified` is set when the cached version is still current.
Async<> fetch(net::HttpClient& client, Download& download, const store::StageCache::Known* cached,
              const StageOptions& options, bool& not_modified, CancelToken token) {
  int stuck = 0, restarts = 0;
  while (true) {
    std::int64_t before = download.done();
    net::HttpRequest request = download.request(cached);
    auto answer = co_await client.send(request, token);
    bool again = false;
    if (answer && answer->ok() && download.complete()) co_return success();
    if (answer && answer->status == 304 && cached) {
      not_modified = true;
      co_return success();
    }
    if (download.must_start_over() || (answer && answer->status == 416)) {
      if (++restarts > restarts_max)
        co_return make_error(ErrorKind::integrity,
                             fmt::format("'{}' changes faster than it can be fetched", net::redact_url(request.url)),
                             "use the address of a fixed version, or stage it when it is no longer written");
      RILLE_CO_CHECK(download.start_over());
      continue;
    }
    if (answer && !answer->ok()) {
      Error error = net::status_error(request, *answer);
      if (answer->status == 404 || answer->status == 410) error.kind = ErrorKind::invalid;  // the script's URL is wrong
      co_return error;
    }
    again = answer || answer.error().retryable;
    stuck = download.done() > before ? 0 : stuck + 1;
    if (!again || stuck > options.resumes_max) {
      if (answer)
        co_return make_error(ErrorKind::network,
                             fmt::format("'{}' ends after {} of {} bytes", net::redact_url(request.url),
                                         download.done(), download.total()),
                             "these bytes are kept: stage it again to continue");
      Error error = std::move(answer).error();
      if (error.hint.empty() && download.done() > 0)
        error.hint = fmt::format("the {} bytes so far are kept; stage again to continue", download.done());
      co_return error;
    }
    RILLE_CO_CHECK(co_await sleep_for(
        client.loop(), std::min(options.retry.cap_ms, options.retry.base_ms << std::min(stuck, 20)), token));
  }
}

// Copies a file from the cache to the destination. False: not cached, or damaged and now removed.
Async<bool> take_from_cache(Loop& loop, const store::StageCache& cache, std::string sha256, Staged& staged,
                            Meter& meter, CancelToken token, Room room) {
  std::string file = cache.file_of(sha256);
  if (file.empty()) co_return false;
  auto copied = co_await copy_file(loop, file, staged.path, sha256, meter, token, std::move(room));
  if (!copied) {
    if (copied.error().kind != ErrorKind::integrity) co_return std::move(copied).error();
    cache.drop(sha256);
    meter.at(0);
    co_return false;
  }
  staged.size_bytes = copied->size_bytes;
  staged.sha256 = sha256;
  staged.from_cache = true;
  meter.end();
  co_return true;
}

}  // namespace

std::string source_key(const std::string& url) { return sha256_hex(without_signature(url)); }

Async<Staged> stage_from_web(net::HttpClient& client, std::string url, std::string destination, StageOptions options,
                             CancelToken token) {
  Loop& loop = client.loop();
  RILLE_CO_CHECK(prepare_place(destination));
  Meter meter(loop.clock(), options.progress);
  store::StageCache cache(options.cache_directory, options.cache_bytes_max, options.room);
  Staged staged{.path = destination};
  if (!options.sha256.empty()) {
    RILLE_CO_TRY(bool taken, co_await take_from_cache(loop, cache, options.sha256, staged, meter, token, options.room));
    if (taken) co_return staged;
  }
  // Shared with the thread jobs, which may outlive this coroutine.
  auto download = std::make_shared<Download>(url, destination, options, meter);
  RILLE_CO_CHECK(download->open());
  staged.resumed_at_bytes = download->done();
  auto cached = cache.find(download->key());
  // With an expected digest the cache was already searched.
  bool ask = cached && options.sha256.empty() && download->done() == 0;
  bool not_modified = false;
  RILLE_CO_CHECK(co_await fetch(client, *download, ask ? &*cached : nullptr, options, not_modified, token));
  if (not_modified) {
    staged.version = cached->version;
    RILLE_CO_TRY(bool taken, co_await take_from_cache(loop, cache, cached->sha256, staged, meter, token, options.room));
    if (taken) {
      download->discard();
      co_return staged;
    }
    RILLE_CO_CHECK(co_await fetch(client, *download, nullptr, options, not_modified, token));
  }
  auto digest = [download] { return store::fingerprint_file(download->part(), true); };
  RILLE_CO_TRY(auto print, co_await thread_job(loop, std::move(digest)));
  if (!options.sha256.empty() && print.sha256 != options.sha256) {
    download->discard();
    co_return wrong_digest(net::redact_url(url), print.sha256, options.sha256);
  }
  staged.size_bytes = print.size_bytes;
  staged.sha256 = print.sha256;
  staged.version = download->version();
  auto end = [download, cache, destination,
              known = store::StageCache::Known{staged.version, staged.sha256}]() -> Result<> {
    (void)cache.put(download->part(), download->key(),
                    known);  // a full or broken cache does not spoil the staging
    return download->finish(destination);
  };
  RILLE_CO_CHECK(co_await thread_job(loop, std::move(end)));
  meter.end();
  co_return staged;
}

}  // namespace rille::transfer
