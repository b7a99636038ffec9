// The entries of earlier sessions. The file has a line for each entry: newlines are "\n", backslashes "\\". Entries are
// appended at once, so that two prompts of one home do not lose each other's. A file of libedit, which earlier versions
// of Rille wrote, is read and replaced.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rille::cli {

class History {
 public:
  static constexpr std::size_t entries_max = 5000, entry_bytes_max = 1 << 20;

  explicit History(std::string path);  // "": is not kept in a file
  void add(const std::string& entry);  // an entry that equals the newest one is not added
  std::size_t size() const { return entries_.size(); }
  const std::string& at(std::size_t index) const { return entries_[index]; }  // 0 is the oldest

  // The index of the newest entry older than `before` that begins with `prefix`, or contains `part`, and is not `skip`.
  std::optional<std::size_t> older(std::size_t before, std::string_view prefix, std::string_view skip) const;
  std::optional<std::size_t> newer(std::size_t after, std::string_view prefix, std::string_view skip) const;
  std::optional<std::size_t> containing(std::size_t before, std::string_view part) const;

 private:
  void load();
  void write_all() const;
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace rille::cli
