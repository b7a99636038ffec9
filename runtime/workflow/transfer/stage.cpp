// Local sources, and code shared with web sources.
#include "runtime/workflow/transfer/stage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/workflow/transfer/stage_parts.hpp"

namespace rille::transfer {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t buffer_bytes = 1 << 20;
constexpr std::int64_t job_bytes = 32 << 20;  // per thread job: some tens of milliseconds
constexpr std::int64_t tell_every_ns = 100'000'000;

// A local file copy in progress.
struct Copy {
  std::string from;
  store::Fd in;
  store::FileWriter out;
  Room room;
  store::Hasher hasher{true};
  std::vector<char> buffer = std::vector<char>(buffer_bytes);

  // Returns the bytes copied; less than job_bytes at the end of the file.
  Result<std::int64_t> step() {
    std::int64_t done = 0;
    while (done < job_bytes) {
      ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("cannot read", from, errno);
      if (got == 0) return done;
      std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
      hasher.update(piece);
      if (room) RILLE_CHECK(room(got));
      RILLE_CHECK(out.write(piece));
      done += got;
    }
    return done;
  }
};

Result<std::shared_ptr<Copy>> open_copy(const std::string& from, const std::string& to, Room room) {
  store::Fd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return errno_error("cannot open", from, errno);
  RILLE_TRY(auto out, store::FileWriter::create(to));
  return std::shared_ptr<Copy>(new Copy{from, std::move(in), std::move(out), std::move(room)});
}

struct Item {
  std::string relative;
  std::int64_t size_bytes;
};

Result<std::vector<Item>> list_tree(const std::string& root) {
  std::vector<Item> items;
  std::error_code failed;
  fs::recursive_directory_iterator it(root, failed), end;
  for (; !failed && it != end; it.increment(failed)) {
    if (!it->is_regular_file(failed)) continue;
    items.push_back({fs::relative(it->path(), root), static_cast<std::int64_t>(it->file_size(failed))});
  }
  if (failed) return errno_error("cannot list", root, failed.value());
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.relative < b.relative; });
  return items;
}

Async<Staged> stage_directory(Loop& loop, std::string source, std::string destination, Meter& meter, CancelToken token,
                              Room room) {
  std::error_code failed;
  std::string root = fs::weakly_canonical(source, failed).string() + "/";
  std::string inside = fs::weakly_canonical(destination, failed).string() + "/";
  if (failed) co_return errno_error("cannot look at", source, failed.value());
  if (inside.starts_with(root))
    co_return make_error(ErrorKind::invalid, fmt::format("cannot stage '{}' into itself, to '{}'", source, destination),
                         "choose a destination outside the source folder");
  auto listing = [source] { return list_tree(source); };
  RILLE_CO_TRY(auto items, co_await thread_job(loop, std::move(listing)));
  Staged staged{.path = destination};
  for (const Item& item : items) staged.size_bytes += item.size_bytes;
  meter.set_total(staged.size_bytes);
  RILLE_CO_CHECK(store::make_directories(destination));
  for (const Item& item : items) {
    std::string to = destination + "/" + item.relative;
    RILLE_CO_CHECK(store::make_directories(store::parent_path(to)));
    RILLE_CO_CHECK(co_await copy_file(loop, source + "/" + item.relative, to, std::string(), meter, token, room));
  }
  co_return staged;
}

Async<Staged> stage_local(Loop& loop, std::string source, std::string destination, StageOptions options,
                          CancelToken token) {
  Meter meter(loop.clock(), options.progress);
  std::error_code failed;
  Staged staged{.path = destination};
  RILLE_CO_CHECK(check_ends(source));
  if (fs::is_directory(source, failed)) {
    if (!options.sha256.empty())
      co_return make_error(ErrorKind::invalid, fmt::format("'{}' is a directory: sha256 is for single files", source),
                           "leave sha256 out, or pack the directory into one file");
    RILLE_CO_TRY(staged,
                 co_await stage_directory(loop, std::move(source), std::move(destination), meter, token, options.room));
  } else {
    auto size = fs::file_size(source, failed);
    if (!failed) meter.set_total(static_cast<std::int64_t>(size));
    RILLE_CO_CHECK(prepare_place(destination));
    RILLE_CO_TRY(auto print, co_await copy_file(loop, source, destination, options.sha256, meter, token, options.room));
    staged.size_bytes = print.size_bytes;
    staged.sha256 = print.sha256;
  }
  meter.end();
  co_return staged;
}

int hex_digit(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t at = digits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

std::string path_of_file_url(std::string_view url) {
  url.remove_prefix(std::string_view("file://").size());
  if (url.starts_with("localhost/")) url.remove_prefix(std::string_view("localhost").size());
  if (!url.starts_with("/")) return {};
  std::string path;
  for (std::size_t i = 0; i < url.size(); ++i) {
    bool coded = url[i] == '%' && i + 2 < url.size() && hex_digit(url[i + 1]) >= 0 && hex_digit(url[i + 2]) >= 0;
    path += coded ? static_cast<char>(hex_digit(url[i + 1]) * 16 + hex_digit(url[i + 2])) : url[i];
    if (coded) i += 2;
  }
  return path;
}

Result<std::string> read_sha256(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (is_sha256_hex(text)) return text;
  return make_error(ErrorKind::invalid, fmt::format("a SHA-256 has 64 hexadecimal digits, not '{}'", text));
}

void Meter::moved(std::int64_t bytes) {
  moved_ += bytes;
  now_.done_bytes += bytes;
  if (std::int64_t now_ns = clock_.monotonic_ns(); now_ns - told_ns_ >= tell_every_ns) {
    told_ns_ = now_ns;
    say();
  }
}

void Meter::end() {
  if (now_.total_bytes < 0) now_.total_bytes = now_.done_bytes;
  say();
}

void Meter::say() {
  if (!tell_) return;
  double seconds = static_cast<double>(clock_.monotonic_ns() - started_ns_) / 1e9;
  now_.bytes_per_second = seconds > 0 ? static_cast<double>(moved_) / seconds : 0;
  tell_(now_);
}

Result<> check_ends(const std::string& source) {
  std::error_code failed;
  fs::file_status status = fs::status(source, failed);
  if (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status)) return {};
  return make_error(ErrorKind::invalid, fmt::format("cannot stage '{}': it is neither a file nor a directory", source),
                    "a pipe or a device has no end: write its output to a file first");
}

Result<> prepare_place(const std::string& destination) {
  std::error_code failed;
  if (fs::is_directory(destination, failed))
    return make_error(ErrorKind::invalid, fmt::format("cannot stage to '{}': it is a directory", destination),
                      "name the file to create, not only its directory");
  return store::make_directories(store::parent_path(destination));
}

Error wrong_digest(const std::string& source, const std::string& found, const std::string& expected) {
  return make_error(ErrorKind::integrity,
                    fmt::format("'{}' has the SHA-256 {} but {} is expected", source, found, expected),
                    "the source has changed or is damaged, or the expected digest is of another version");
}

Async<store::Fingerprint> copy_file(Loop& loop, std::string from, std::string to, std::string sha256, Meter& meter,
                                    CancelToken token, Room room) {
  // Shared with the thread jobs, which may outlive this coroutine.
  RILLE_CO_TRY(std::shared_ptr<Copy> copy, open_copy(from, to, std::move(room)));
  for (std::int64_t n = job_bytes; n == job_bytes;) {
    if (token.cancelled()) co_return token.reason();
    auto step = [copy] { return copy->step(); };
    RILLE_CO_TRY(n, co_await thread_job(loop, std::move(step)));
    meter.moved(n);
  }
  store::Fingerprint print = copy->hasher.finish();
  if (!sha256.empty() && print.sha256 != sha256) co_return wrong_digest(from, print.sha256, sha256);
  auto commit = [copy] { return copy->out.commit(); };
  RILLE_CO_CHECK(co_await thread_job(loop, std::move(commit)));
  co_return print;
}

Async<Staged> stage(net::HttpClient& client, std::string source, std::string destination, StageOptions options,
                    CancelToken token) {
  if (source.empty() || destination.empty())
    co_return make_error(ErrorKind::invalid, "staging needs a source and a destination", "box:stage(from, to)");
  if (!options.sha256.empty()) { RILLE_CO_TRY(options.sha256, read_sha256(std::move(options.sha256))); }
  if (source.starts_with("http://") || source.starts_with("https://"))
    co_return co_await stage_from_web(client, std::move(source), std::move(destination), std::move(options), token);
  if (source.starts_with("file://")) {
    std::string path = path_of_file_url(source);
    if (path.empty())
      co_return make_error(ErrorKind::invalid, fmt::format("'{}' is not a file on this machine", source),
                           "write file:///PATH, with three slashes and no host name");
    source = std::move(path);
  } else if (std::size_t end = source.find("://"); end != std::string::npos) {
    co_return make_error(ErrorKind::invalid, fmt::format("cannot stage from '{}'", net::redact_url(source)),
                         "sources are http://, https://, file:// and paths");
  }
  co_return co_await stage_local(client.loop(), std::move(source), std::move(destination), std::move(options), token);
}

}  // namespace rille::transfer
