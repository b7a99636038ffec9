#include "runtime/workflow/agent/file_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

namespace fs = std::filesystem;

namespace {

struct Target {
  std::string path, part, shown, sha256;
  std::int64_t size = 0;
};

Result<Target> target_of(const std::string& root, const Value& header) {
  Target t;
  t.shown = header.text("path");
  RILLE_TRY(t.path, inside(root, t.shown));
  t.sha256 = header.text("sha256");
  t.size = header.integer("size", -1);
  if (t.path == root || !is_sha256_hex(t.sha256) || t.size < 0)
    return make_error(ErrorKind::invalid, "put '" + t.shown + "': a file name, a size and a SHA-256 are required",
                      "use the same version of rille here and on the instance");
  std::size_t slash = t.path.rfind('/');
  t.part = t.path.substr(0, slash + 1) + "." + t.path.substr(slash + 1) + ".part-" + t.sha256.substr(0, 16);
  return t;
}

Value describe_file(const struct stat& st) {
  Value v;
  v.set("directory", S_ISDIR(st.st_mode)).set("size", static_cast<std::int64_t>(S_ISDIR(st.st_mode) ? 0 : st.st_size));
  v.set("mode", static_cast<int>(st.st_mode & 07777));
  v.set("modified_wall_us", static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1'000'000 + st.st_mtim.tv_nsec / 1000);
  return v;
}

constexpr std::string_view held_prefix = ".held-";

bool is_leftover(const std::string& name) {
  return name.starts_with(held_prefix) ||
         (name.size() > 1 && name[0] == '.' &&
          (name.find(".part-") != std::string::npos || name.find(".pull-") != std::string::npos)) ||
         name.find(".tmp-") != std::string::npos;
}

// All files of the folder, or none.
Result<> link_all(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  std::size_t entries = 0;
  fs::recursive_directory_iterator it(from, error), end;
  for (; !error && it != end && entries <= FileServer::list_entries_max; it.increment(error), ++entries) {
    const fs::path there = to / it->path().lexically_relative(from);
    if (it->path().filename().string().starts_with(held_prefix)) it.disable_recursion_pending();
    if (it->is_symlink() || is_leftover(it->path().filename())) continue;
    if (it->is_directory()) fs::create_directories(there, error);
    else if (it->is_regular_file()) fs::create_hard_link(it->path(), there, error);
    if (error) break;
  }
  if (!error && entries > FileServer::list_entries_max) error = std::make_error_code(std::errc::argument_list_too_long);
  return error ? Result<>(errno_error("hold", from.string(), error.value())) : success();
}

struct Kept {
  std::string_view from, to;
  std::set<std::string_view> paths;
  bool keeps(std::string_view path) const { return path < from || (!to.empty() && path >= to) || paths.contains(path); }
};

Result<Kept> kept_in(std::string_view body, const std::string& shown) {
  std::vector<std::string_view> names;
  for (std::size_t end; (end = body.find('\0')) != body.npos; body.remove_prefix(end + 1))
    names.push_back(body.substr(0, end));
  if (names.size() < 2 || !body.empty())
    return make_error(ErrorKind::invalid, "prune '" + shown + "': the request names no range of paths",
                      "use the same version of rille here and on the instance");
  return Kept{names[0], names[1], {names.begin() + 2, names.end()}};
}

Reply offset_reply(std::int64_t offset) {
  Reply reply;
  reply.value.set("offset", offset);
  return reply;
}

Result<> publish(const Target& t, int fd, mode_t mode) {
  RILLE_TRY(auto found, store::fingerprint_file(t.part, true));
  if (found.sha256 != t.sha256) {
    unlink(t.part.c_str());
    return make_error(ErrorKind::integrity,
                      fmt::format("'{}' arrived with SHA-256 {}, not {}", t.shown, found.sha256, t.sha256),
                      "the file changed while it was sent, or the channel damaged it; send it again")
        .with_retry();
  }
  if (fchmod(fd, mode) < 0 || fdatasync(fd) < 0) return errno_error("write", t.shown, errno);
  if (rename(t.part.c_str(), t.path.c_str()) < 0) return errno_error("put", t.shown, errno);
  return store::sync_directory(store::parent_path(t.path));
}

}  // namespace

bool FileServer::handles(const std::string& op) {
  return op == "put_begin" || op == "put" || op == "get" || op == "stat" || op == "list" || op == "mkdir" ||
         op == "prune" || op == "hold" || op == "room";
}

Result<Reply> FileServer::handle(const std::string& op, const Value& header, const std::string& body) const {
  if (op == "put_begin") return begin(header);
  if (op == "put") return put(header, body);
  if (op == "get") return get(header);
  if (op == "stat") return stat(header);
  if (op == "list") return list(header);
  if (op == "prune") return prune(header, body);
  if (op == "hold") return hold(header);
  if (op == "room") return room(header);
  return make_directory(header);
}

Result<Reply> FileServer::begin(const Value& header) const {
  RILLE_TRY(Target t, target_of(root_, header));
  struct stat st {};
  if (::stat(t.path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == t.size) {
    RILLE_TRY(auto found, store::fingerprint_file(t.path, true));
    if (found.sha256 == t.sha256) {
      Reply reply;
      reply.value.set("have", true);
      return reply;
    }
  }
  std::int64_t have = ::stat(t.part.c_str(), &st) == 0 ? st.st_size : 0;
  return offset_reply(have < t.size ? have : 0);
}

Result<Reply> FileServer::put(const Value& header, const std::string& body) const {
  RILLE_TRY(Target t, target_of(root_, header));
  std::int64_t offset = header.integer("offset", -1), end = offset + static_cast<std::int64_t>(body.size());
  if (offset < 0 || end > t.size || (body.empty() && t.size > 0))
    return make_error(
        ErrorKind::invalid,
        fmt::format("put '{}': bytes {} to {} are not inside the file's size of {}", t.shown, offset, end, t.size),
        "use the same version of rille here and on the instance");
  RILLE_CHECK(store::make_directories(store::parent_path(t.path)));
  store::Fd fd(open(t.part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (offset == 0 ? O_TRUNC : 0), 0600));
  if (!fd.valid()) return errno_error("put", t.shown, errno);
  off_t have = lseek(fd.get(), 0, SEEK_END);
  if (have != offset)
    return make_error(ErrorKind::state,
                      fmt::format("put '{}': the instance has received {} bytes so far, not {}", t.shown, have, offset),
                      "the transfer goes on from there when it is tried again")
        .with_retry();
  RILLE_CHECK(store::write_all(fd.get(), body, t.shown));
  if (end == t.size) RILLE_CHECK(publish(t, fd.get(), static_cast<mode_t>(header.integer("mode", 0644) & 0777) | 0600));
  return offset_reply(end);
}

Result<Reply> FileServer::get(const Value& header) const {
  std::string shown = header.text("path");
  RILLE_TRY(std::string path, inside(root_, shown));
  std::int64_t offset = header.integer("offset", -1), length = header.integer("length", -1);
  if (offset < 0 || length < 0 || length > static_cast<std::int64_t>(chunk_bytes))
    return make_error(
        ErrorKind::invalid,
        fmt::format(
            "get '{}': {} bytes at offset {}: expected an offset of 0 or more and at most {} bytes (chunk_bytes)",
            shown, length, offset, chunk_bytes),
        "use the same version of rille here and on the instance");
  store::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("get", shown, errno);
  Reply reply;
  reply.body.resize(static_cast<std::size_t>(length));
  std::size_t done = 0;
  while (done < reply.body.size()) {
    ssize_t n =
        pread(fd.get(), reply.body.data() + done, reply.body.size() - done, offset + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("get", shown, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  reply.body.resize(done);
  reply.value.set("length", static_cast<std::int64_t>(done));
  return reply;
}

Result<Reply> FileServer::stat(const Value& header) const {
  std::string shown = header.text("path");
  RILLE_TRY(std::string path, inside(root_, shown));
  struct stat st {};
  if (::stat(path.c_str(), &st) < 0) return errno_error("stat", shown, errno);
  Reply reply;
  reply.value = describe_file(st);
  reply.value.set("path", shown);
  if (S_ISREG(st.st_mode) && header.boolean("digest")) {
    RILLE_TRY(auto found, store::fingerprint_file(path, true));
    reply.value.set("sha256", found.sha256).set("size", found.size_bytes);
  }
  return reply;
}

Result<Reply> FileServer::list(const Value& header) const {
  std::string shown = header.text("path");
  RILLE_TRY(std::string path, inside(root_, shown));
  std::error_code error;
  Value::Array entries;
  fs::recursive_directory_iterator it(path + "/", error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with(held_prefix)) it.disable_recursion_pending();
    if (is_leftover(name)) continue;
    struct stat st {};
    // Links to files are followed; links to directories are not, since they may form a cycle.
    if (::stat(it->path().c_str(), &st) < 0 || (it->is_symlink() && S_ISDIR(st.st_mode))) continue;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) continue;
    Value entry = describe_file(st);
    entry.set("path", it->path().string().substr(path.size() + 1));
    entries.push_back(std::move(entry));
    if (entries.size() > list_entries_max)
      return make_error(ErrorKind::invalid,
                        fmt::format("'{}' has more than {} entries (list_entries_max)", shown, list_entries_max),
                        "pack the folder into an archive on the instance, or get one of its subfolders");
  }
  if (error) return errno_error("list", shown, error.value());
  std::sort(entries.begin(), entries.end(),
            [](const Value& a, const Value& b) { return a.text("path") < b.text("path"); });
  Reply reply;
  reply.value.set("entries", std::move(entries));
  return reply;
}

// What is left of interrupted transfers goes, too. A link is removed, not what it points to.
Result<Reply> FileServer::prune(const Value& header, const std::string& body) const {
  const std::string shown = header.text("path");
  RILLE_TRY(const std::string path, inside(root_, shown));
  if (path == root_)
    return make_error(ErrorKind::invalid, "'" + shown + "' is the work directory itself",
                      "name a folder in it: what is not in the source would be removed from the whole directory");
  RILLE_TRY(const Kept kept, kept_in(body, shown));
  std::error_code error;
  std::vector<fs::path> unwanted, folders;
  fs::recursive_directory_iterator it(path + "/", error), last;
  for (; !error && it != last; it.increment(error)) {
    if (it->is_directory() && !it->is_symlink()) folders.push_back(it->path());
    else if (!kept.keeps(it->path().string().substr(path.size() + 1))) unwanted.push_back(it->path());
  }
  if (error && error.value() != ENOENT) return errno_error("list", shown, error.value());
  for (const fs::path& file : unwanted)
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) return errno_error("remove", file.string(), errno);
  // The iterator names a folder before what is in it. A folder that is not empty stays.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) ::rmdir(folder->c_str());
  if (header.boolean("whole")) ::rmdir(path.c_str());
  return Reply{};
}

Result<Reply> FileServer::hold(const Value& header) const {
  const std::string shown = header.text("path"), name = header.text("name");
  RILLE_TRY(const std::string path, inside(root_, shown));
  const bool plain = !name.empty() && name.size() <= 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
  if (path == root_ || !plain)
    return make_error(ErrorKind::invalid,
                      fmt::format("hold '{}': a folder below the work directory and a name of "
                                  "hexadecimal digits are required",
                                  shown),
                      "use the same version of rille here and on the instance");
  const std::string held = fmt::format("{}/{}{}", store::parent_path(path), held_prefix, name);
  RILLE_CHECK(store::remove_tree(held));
  const Result<> linked = link_all(path, held);
  if (!linked) RILLE_CHECK(store::remove_tree(held));
  Reply reply;
  if (linked) {
    reply.value.set("path", held.substr(root_.size() + 1));
    return reply;
  }
  // The folder is still there, so these are reasons of the file system: it is fetched as it is.
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return linked.error();
  reply.value.set("path", shown);
  return reply;
}

Result<Reply> FileServer::room(const Value& header) const {
  RILLE_TRY(const std::string path, inside(root_, header.text("path")));
  struct statvfs fs_info {};
  std::string there = path;
  while (::statvfs(there.c_str(), &fs_info) != 0) {
    if (there == root_ || (errno != ENOENT && errno != ENOTDIR)) return errno_error("look at", there, errno);
    there = store::parent_path(there);
  }
  Reply reply;
  reply.value.set("free_bytes",
                  static_cast<std::int64_t>(fs_info.f_bavail) * static_cast<std::int64_t>(fs_info.f_frsize));
  if (!header.boolean("below")) return reply;
  constexpr std::int64_t block_bytes = 512;  // of st_blocks
  std::int64_t below = 0;
  const auto count = [&below](const fs::path& file) {
    struct stat st {};
    if (::lstat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode))
      below += std::max<std::int64_t>(st.st_size, st.st_blocks * block_bytes);
  };
  count(path);
  std::error_code error;
  for (fs::recursive_directory_iterator it(path + "/", error), end; !error && it != end; it.increment(error))
    count(it->path());
  reply.value.set("below_bytes", below);
  return reply;
}

Result<Reply> FileServer::make_directory(const Value& header) const {
  RILLE_TRY(std::string path, inside(root_, header.text("path")));
  RILLE_CHECK(store::make_directories(path));
  return Reply{};
}

}  // namespace rille::agent
