#include "runtime/core/store/blobs.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::store {

std::string Blobs::path(const std::string& sha256) const { return root_ + "/" + sha256.substr(0, 2) + "/" + sha256; }

Result<std::string> Blobs::put(std::string_view bytes) const {
  std::string name = sha256_hex(bytes), file = path(name), folder = parent_path(file);
  std::error_code ec;
  if (!std::filesystem::exists(folder, ec)) {
    RILLE_CHECK(make_directories(folder));
    RILLE_CHECK(sync_directory(root_));
    RILLE_CHECK(sync_directory(parent_path(root_)));
  }
  // Write the file even if it exists, because the existing file may be damaged.
  RILLE_CHECK(write_file_atomic(file, bytes, 0600));
  return name;
}

Result<std::string> Blobs::get(const std::string& sha256) const {
  std::string file = path(sha256);
  auto damaged = [&](const std::string& how) {
    return make_error(ErrorKind::integrity, fmt::format("a file with a value of the journal, '{}', {}", file, how),
                      "restore the file from a backup of RILLE_HOME, or start a new run");
  };
  Result<std::string> bytes = read_file(file, static_cast<std::int64_t>(blob_bytes_max) + 1);
  if (!bytes) return damaged("cannot be read: " + bytes.error().message);
  if (sha256_hex(*bytes) != sha256) return damaged("has been changed");
  return bytes;
}

Result<> Blobs::sweep(const std::function<Result<bool>(const std::string&)>& wanted) const {
  namespace fs = std::filesystem;
  const auto failed = [](const fs::path& path, std::error_code ec) {
    return errno_error("cannot remove", path.string(), ec.value());
  };
  std::error_code ec;
  if (fs::is_symlink(root_, ec))
    return make_error(ErrorKind::integrity, fmt::format("'{}' is a link", root_),
                      "nothing is removed where it leads: put a folder in its place");
  for (fs::recursive_directory_iterator it(root_, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->is_directory(ec)) continue;
    const std::string name = it->path().filename().string();
    RILLE_TRY(const bool kept, wanted(name));
    if (kept) continue;
    if (std::error_code why; !fs::remove(it->path(), why) && why) return failed(it->path(), why);
  }
  if (ec && ec != std::errc::no_such_file_or_directory) return failed(root_, ec);
  return {};
}

}  // namespace rille::store
