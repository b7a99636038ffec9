#include "runtime/core/store/stage_cache.hpp"

#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::store {

namespace fs = std::filesystem;

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
  return write_file_atomic(directory_ + "/url/" + key + ".json", text);
}

Result<> StageCache::ask_room(std::int64_t bytes) const { return room_ ? room_(bytes) : success(); }

void StageCache::drop(const std::string& sha256) const { (void)remove_tree(directory_ + "/sha256/" + sha256); }

// Best effort: another process may be removing files too.
void StageCache::make_room(std::int64_t bytes) const {
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
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= bytes_max_) return;
    total -= entry.size;
    fs::remove(entry.path, failed);
  }
}

}  // namespace rille::store
