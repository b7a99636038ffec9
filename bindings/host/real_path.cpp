#include "bindings/host/real_path.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>

namespace rille::host {

namespace {

constexpr int links_max = 40;  // as Linux

void split_before(std::deque<std::string>& parts, std::string_view path) {
  std::deque<std::string> added;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    if (const std::string_view part = path.substr(0, end); !part.empty() && part != ".") added.emplace_back(part);
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 1);
  }
  parts.insert(parts.begin(), added.begin(), added.end());
}

// "" if it is not a link or cannot be read
std::string link_target(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISLNK(found.st_mode)) return {};
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return target;
}

std::string absolute_path(const std::string& path, const std::string& folder) {
  if (path.starts_with('/')) return path;
  std::error_code ec;
  return (folder.empty() ? std::filesystem::current_path(ec).string() : folder) + "/" + path;
}

}  // namespace

std::string lexical_path(const std::string& path, const std::string& folder) {
  std::string out = std::filesystem::path(absolute_path(path, folder)).lexically_normal().string();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

Result<> check_path(const std::string& path) {
  if (path.empty()) return make_error(ErrorKind::invalid, "a path is empty");
  if (path.find('\0') != std::string::npos)
    return make_error(ErrorKind::invalid, "a path has a zero byte in it",
                      "remove that byte: no file name contains one");
  if (path.size() >= PATH_MAX)
    return make_error(
        ErrorKind::invalid,
        fmt::format("a path has {} bytes, more than the system takes: {}..", path.size(), path.substr(0, 40)),
        fmt::format("at most {} bytes", PATH_MAX - 1));
  return {};
}

Result<std::string> real_path(const std::string& path, bool follow_last, const std::string& folder) {
  RILLE_CHECK(check_path(path));
  std::deque<std::string> parts;
  split_before(parts, absolute_path(path, folder));
  std::string out;
  for (int links = 0; !parts.empty();) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    std::string next = out + "/" + part;
    const std::string target = parts.empty() && !follow_last ? std::string() : link_target(next);
    if (target.empty()) {
      out = std::move(next);
      continue;
    }
    if (++links > links_max) return errno_error("follow", path, ELOOP);
    if (target.starts_with('/')) out.clear();
    split_before(parts, target);
  }
  return out.empty() ? std::string("/") : out;
}

bool is_below(std::string_view path, std::string_view root) {
  if (root == "/" || path == root) return true;
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

}  // namespace rille::host
