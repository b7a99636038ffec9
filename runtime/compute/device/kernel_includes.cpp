#include "runtime/compute/device/kernel_includes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <vector>

#include "runtime/compute/device/kernel_files.hpp"

namespace rille::device {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view blank = " \t\r\f\v";

std::string_view past_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  return text;
}

// Returns x.h for a line `# include "x.h"` or `# include <x.h>`; "" for other lines.
std::string_view included_by(std::string_view line) {
  line = past_blanks(line);
  if (!line.starts_with('#')) return {};
  line = past_blanks(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = past_blanks(line.substr(7));
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
  const auto end = line.find(line[0] == '"' ? '"' : '>', 1);
  return end == line.npos ? std::string_view() : line.substr(1, end - 1);
}

class IncludeFinder {
 public:
  explicit IncludeFinder(const KernelOptions& options) {
    std::error_code failed;
    if (options.confined) within_ = fs::canonical(options.folder, failed);
    apart_ = options.confined;
    if (!options.folder.empty()) folders_.push_back(options.folder);
    const auto& flags = options.flags;
    for (std::size_t i = 0; i < flags.size(); ++i) {
      for (const std::string_view flag : {"-I", "-iquote", "-isystem", "-idirafter", "--include-path="}) {
        if (!flags[i].starts_with(flag)) continue;
        const std::string rest = flags[i].substr(flag.size());
        if (!rest.empty()) folders_.push_back(rest);
        else if (i + 1 < flags.size()) folders_.push_back(flags[i + 1]);
        break;
      }
      for (const std::string_view flag : {"-include", "--pre-include="}) {
        if (!flags[i].starts_with(flag)) continue;
        const std::string rest = flags[i].substr(flag.size());
        if (!rest.empty()) before_.push_back(rest);
        else if (i + 1 < flags.size()) before_.push_back(flags[i + 1]);
      }
    }
  }

  Result<std::string> run(std::string_view text) {
    for (const auto& name : before_) find(name, fs::path("."));
    read(text, {});
    for (; !found_.empty(); found_.pop_front()) {  // a queue, because a chain of includes may be too long for recursion
      const auto [path, content] = std::move(found_.front());
      read(content, path.parent_path());
      if (!apart_ || out_.size() <= included_bytes_max) continue;
      return make_error(ErrorKind::invalid, fmt::format("a kernel includes more than {} MB", included_bytes_max >> 20),
                        "include less");
    }
    return std::move(out_);
  }

 private:
  void read(std::string_view text, const fs::path& beside) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (const auto name = included_by(text.substr(at, end - at)); !name.empty()) find(name, beside);
      at = end + 1;
    }
  }

  // Takes the file from every folder that has one of that name, since only the compiler knows which one it reads.
  void find(std::string_view name, const fs::path& beside) {
    if (!beside.empty() || name.starts_with('/')) take(beside / name);
    for (const auto& folder : folders_) take(fs::path(folder) / name);
  }

  void take(const fs::path& named) {
    std::error_code failed;
    const fs::path path = apart_ ? fs::canonical(named, failed) : named;  // below /proc a file has any number of names
    if (failed || (apart_ && !lies_within(path))) return;
    if (!fs::is_regular_file(path, failed) || !seen_.insert(path.lexically_normal().string()).second) return;
    if (apart_ && out_.size() > included_bytes_max) return;
    auto text = read_small_file(path.string(), kernel_source_bytes_max);
    if (!text) return;
    out_ += path.string() + '\0' + *text + '\0';
    found_.emplace_back(path, std::move(*text));
  }

  bool lies_within(const fs::path& path) const {
    return !within_.empty() &&
           std::mismatch(within_.begin(), within_.end(), path.begin(), path.end()).first == within_.end();
  }

  std::vector<std::string> folders_, before_;
  bool apart_ = false;
  fs::path within_;  // for a confined kernel: real path of the only folder whose files count
  std::set<std::string> seen_;
  std::deque<std::pair<fs::path, std::string>> found_;  // files whose own includes are still to be read
  std::string out_;
};

}  // namespace

Result<std::string> included_files(std::string_view text, const KernelOptions& options) {
  if (text.find("include") == text.npos && options.flags.empty()) return std::string();
  return IncludeFinder(options).run(text);
}

}  // namespace rille::device
