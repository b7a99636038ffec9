#include "bindings/cli/prompt/history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

constexpr std::string_view libedit_head = "_HiStOrY_V2_";

std::string to_line(const std::string& entry) {
  std::string out;
  for (const char c : entry) {
    if (c == '\n') out += "\\n";
    else if (c == '\\') out += "\\\\";
    else out += c;
  }
  return out + "\n";
}

std::string from_line(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) out += line[i];
    else if (line[++i] == 'n') out += '\n';
    else out += line[i];
  }
  return out;
}

// libedit writes a space as "\040", and other characters likewise.
std::string from_libedit(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < line.size() && line[at] >= '0' && line[at] <= '7'; };
    if (line[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((line[i + 1] - '0') * 64 + (line[i + 2] - '0') * 8 + (line[i + 3] - '0'));
      i += 3;
    } else {
      if (line[i] == '\\' && i + 1 < line.size()) ++i;
      out += line[i];
    }
  }
  return out;
}

}  // namespace

History::History(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) load();
}

void History::load() {
  std::ifstream in(path_, std::ios::binary);
  std::string line;
  bool of_libedit = false;
  std::size_t lines = 0;
  for (; std::getline(in, line); ++lines) {
    if (lines == 0 && line == libedit_head) {
      of_libedit = true;
      continue;
    }
    if (line.empty() || line.size() > 2 * entry_bytes_max) continue;
    std::string entry = of_libedit ? from_libedit(line) : from_line(line);
    if (entries_.empty() || entries_.back() != entry) entries_.push_back(std::move(entry));
  }
  if (entries_.size() > entries_max)
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(entries_max));
  if (of_libedit || lines > 2 * entries_max) write_all();
}

// A history that cannot be written is lost, and nothing else.
void History::write_all() const {
  std::string all;
  for (const std::string& entry : entries_) all += to_line(entry);
  (void)store::write_file_atomic(path_, all, 0600);
}

void History::add(const std::string& entry) {
  if (entry.empty() || entry.size() > entry_bytes_max || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (path_.empty()) return;
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string line = to_line(entry);
  if (::write(file, line.data(), line.size()) < 0) { /* the disk is full: the entry is lost */
  }
  ::close(file);
}

std::optional<std::size_t> History::older(std::size_t before, std::string_view prefix, std::string_view skip) const {
  for (std::size_t i = before; i-- > 0;)
    if (entries_[i].starts_with(prefix) && entries_[i] != skip) return i;
  return std::nullopt;
}

std::optional<std::size_t> History::newer(std::size_t after, std::string_view prefix, std::string_view skip) const {
  for (std::size_t i = after + 1; i < entries_.size(); ++i)
    if (entries_[i].starts_with(prefix) && entries_[i] != skip) return i;
  return std::nullopt;
}

std::optional<std::size_t> History::containing(std::size_t before, std::string_view part) const {
  for (std::size_t i = before; i-- > 0;)
    if (entries_[i].find(part) != std::string::npos) return i;
  return std::nullopt;
}

}  // namespace rille::cli
