#include "runtime/core/store/stage_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::store {

namespace fs = std::filesystem;

namespace {
constexpr std::int64_t look_every_ns = 60'000'000'000;  // other processes add files, too
constexpr int slack_share = 16;  // a full cache is emptied by one part in so many, so that not every file looks

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
}  // namespace

StageCache StageCache::with_bytes_max(std::int64_t bytes_max) const {
  StageCache out = *this;
  out.bytes_max_ = bytes_max;
  return out;
}

std::string StageCache::file_of(const std::string& sha256) const {
  if (directory_.empty() || !is_sha256_hex(sha256)) return {};
  std::string path = directory_ + "/sha256/" + sha256;
  if (::utimes(path.c_str(), nullptr) != 0) return {};  // also marks the file as used now
  return path;
}

std::optional<StageCache::Known> StageCache::find(const std::string& key) const {
  if (directory_.empty()) return {};
  auto text = read_file(directory_ + "/url/" + key + ".json", 64 << 10);
  if (!text) return {};
  auto note = Value::from_json(*text);
  if (!note) return {};
  Known known{note->text("version"), note->text("sha256")};
  if (known.version.empty() || file_of(known.sha256).empty()) return {};
  return known;
}

Result<> StageCache::put(const std::string& file, const std::string& key, const Known& known) const {
  if (file_of(known.sha256).empty()) {
    std::error_code failed;
    auto size = static_cast<std::int64_t>(fs::file_size(file, failed));
    if (failed) return errno_error("cannot look at", file, failed.value());
    RILLE_TRY(const std::string place, place_for(known.sha256, size));
    if (place.empty()) return success();
    RILLE_TRY(auto map, MappedFile::open(file));
    RILLE_CHECK(write_file_atomic(place, map.view()));
  }
  return note(key, known);
}

Result<std::string> StageCache::place_for(const std::string& sha256, std::int64_t size_bytes) const {
  if (directory_.empty() || !is_sha256_hex(sha256) || size_bytes > bytes_max_) return std::string();
  RILLE_CHECK(make_directories(directory_ + "/sha256"));
  RILLE_CHECK(ask_room(size_bytes));
  make_room(size_bytes);
  return directory_ + "/sha256/" + sha256;
}

Result<> StageCache::note(const std::string& key, const Known& known) const {
  if (directory_.empty() || known.version.empty()) return success();
  RILLE_CHECK(make_directories(directory_ + "/url"));
  Value text_of;
  text_of.set("version", known.version).set("sha256", known.sha256);
  const std::string text = text_of.to_json();
  RILLE_CHECK(ask_room(static_cast<std::int64_t>(text.size())));
  const std::string path = directory_ + "/url/" + key + ".json", fresh = path + ".tmp-" + random_hex(6);
  Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_error("cannot create", fresh, errno);
  Result<> written = write_all(fd.get(), text, fresh);
  if (written && ::rename(fresh.c_str(), path.c_str()) != 0) written = errno_error("cannot rename", fresh, errno);
  if (!written) ::unlink(fresh.c_str());
  return written;
}

Result<> StageCache::ask_room(std::int64_t bytes) const { return room_ ? room_(bytes) : success(); }

void StageCache::drop(const std::string& sha256) const { (void)remove_tree(directory_ + "/sha256/" + sha256); }

void StageCache::make_room(std::int64_t bytes) const {
  const std::lock_guard<std::mutex> held(tally_->mutex);
  const std::int64_t now = now_ns();
  const bool known = tally_->bytes >= 0 && now - tally_->looked_ns < look_every_ns;
  if (known && tally_->bytes + bytes <= bytes_max_) {
    tally_->bytes += bytes;
    return;
  }
  tally_->bytes = remove_oldest(bytes);
  tally_->looked_ns = now;
}

// Returns how many bytes the folder holds with these. Best effort: another process may be removing files too.
std::int64_t StageCache::remove_oldest(std::int64_t bytes) const {
  struct Entry {
    fs::file_time_type used;
    std::int64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t total = bytes;
  std::error_code failed;
  for (fs::directory_iterator it(directory_ + "/sha256", failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code gone;
    Entry entry{it->last_write_time(gone), static_cast<std::int64_t>(it->file_size(gone)), it->path()};
    if (gone) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  if (total <= bytes_max_) return total;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const std::int64_t goal = bytes_max_ - bytes_max_ / slack_share;
  for (const Entry& entry : entries) {
    if (total <= goal) break;
    total -= entry.size;
    fs::remove(entry.path, failed);
  }
  return total;
}

}  // namespace rille::store
