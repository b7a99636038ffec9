#include "runtime/core/loop/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "runtime/core/base/time.hpp"

namespace rille {

namespace {

struct Row {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t start_time = 0;
};

std::string slurp(const std::string& path) {
  std::string out;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char block[16384];
  for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;) out.append(block, static_cast<std::size_t>(n));
  close(fd);
  return out;
}

std::optional<Row> read_row(pid_t pid) {
  std::string text = slurp("/proc/" + std::to_string(pid) + "/stat");
  std::size_t end = text.rfind(')');  // find the last ')', because the process name may contain any character
  if (end == std::string::npos || end + 2 >= text.size()) return {};
  Row row;
  row.state = text[end + 2];
  // Read the space-separated fields from the third, `state`: the fourth is ppid, the 22nd is the start time.
  std::size_t at = end + 2;
  for (int field = 3; field <= 22; ++field) {
    if (field == 4) row.parent = static_cast<pid_t>(std::atol(text.c_str() + at));
    if (field == 22) row.start_time = std::strtoull(text.c_str() + at, nullptr, 10);
    at = text.find(' ', at);
    if (at == std::string::npos) break;
    ++at;
  }
  return row;
}

bool has_entry(pid_t pid, const std::string& entry) {
  if (entry.empty()) return false;
  std::string text = slurp("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1))
    if ((at == 0 || text[at - 1] == '\0') && (at + entry.size() == text.size() || text[at + entry.size()] == '\0'))
      return true;
  return false;
}

std::map<pid_t, Row> all_processes() {
  std::map<pid_t, Row> out;
  DIR* dir = opendir("/proc");
  if (!dir) return out;
  while (dirent* entry = readdir(dir)) {
    pid_t pid = 0;
    std::string_view name = entry->d_name;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (auto row = read_row(pid); row && row->state != 'Z' && row->state != 'X') out.emplace(pid, *row);
  }
  closedir(dir);
  return out;
}

std::map<pid_t, Row> matching(const ProcessMatch& match) {
  std::map<pid_t, Row> all = all_processes(), out;
  std::set<pid_t> known;
  for (const ProcessId& p : match.known)
    if (auto it = all.find(p.pid); it != all.end() && it->second.start_time == p.start_time) known.insert(p.pid);
  auto beneath = [&](pid_t pid) {
    auto is_root = [&](pid_t p) {
      return known.count(p) > 0 || std::find(match.roots.begin(), match.roots.end(), p) != match.roots.end();
    };
    if (known.count(pid)) return true;
    if (is_root(pid)) return match.roots_too;
    for (int depth = 0; depth < 4096; ++depth) {
      auto it = all.find(pid);
      if (it == all.end()) return false;
      pid = it->second.parent;
      if (is_root(pid)) return true;
    }
    return false;
  };
  for (const auto& [pid, row] : all)
    if (pid != getpid() && (beneath(pid) || has_entry(pid, match.environment_entry))) out.emplace(pid, row);
  return out;
}

// A pidfd of the process with this id and start time; -1 if that process has ended.
int open_process(pid_t pid, std::uint64_t start_time) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return -1;
  auto row = read_row(pid);
  if (row && row->start_time == start_time) return fd;
  close(fd);
  return -1;
}

bool wait_gone(int pidfd, std::int64_t ms) {
  pollfd p{pidfd, POLLIN, 0};
  return poll(&p, 1, static_cast<int>(std::max<std::int64_t>(0, ms))) > 0;
}

std::int64_t now_ms() { return system_clock().monotonic_ns() / 1'000'000; }

}  // namespace

std::string boot_id() {
  const std::string id = slurp("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

std::optional<std::uint64_t> process_start_time(pid_t pid) {
  auto row = read_row(pid);
  if (!row || row->state == 'Z' || row->state == 'X') return {};
  return row->start_time;
}

std::vector<pid_t> find_processes(const ProcessMatch& match) {
  std::vector<pid_t> out;
  for (const auto& [pid, row] : matching(match)) out.push_back(pid);
  return out;
}

std::vector<ProcessId> identify_processes(const ProcessMatch& match) {
  std::vector<ProcessId> out;
  for (const auto& [pid, row] : matching(match)) out.push_back({pid, row.start_time});
  return out;
}

std::string encode_processes(const std::vector<ProcessId>& processes) {
  std::string out = boot_id() + "\n";
  for (const ProcessId& p : processes) out += std::to_string(p.pid) + " " + std::to_string(p.start_time) + "\n";
  return out;
}

std::vector<ProcessId> decode_processes(std::string_view text) {
  std::vector<ProcessId> out;
  std::size_t end = text.find('\n');
  if (end == std::string_view::npos || text.substr(0, end) != boot_id()) return out;
  while (true) {
    text.remove_prefix(end + 1);
    end = text.find('\n');
    // ignore a line without a newline: it was cut off and may lack digits
    if (end == std::string_view::npos) return out;
    ProcessId p;
    const char* last = text.data() + end;
    auto [space, bad_pid] = std::from_chars(text.data(), last, p.pid);
    if (bad_pid != std::errc() || space == last || *space != ' ') return out;
    auto [rest, bad_start] = std::from_chars(space + 1, last, p.start_time);
    if (bad_start != std::errc() || rest != last) return out;
    if (p.pid > 1) out.push_back(p);
  }
}

Result<> kill_processes(const ProcessMatch& match, std::int64_t limit_ms) {
  std::int64_t until = now_ms() + limit_ms;
  while (true) {
    std::map<pid_t, Row> found = matching(match);
    if (found.empty()) return {};
    std::vector<int> fds;
    for (const auto& [pid, row] : found) {
      int fd = open_process(pid, row.start_time);
      if (fd < 0) continue;
      syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
      fds.push_back(fd);
    }
    for (int fd : fds) {
      wait_gone(fd, until - now_ms());
      close(fd);
    }
    if (now_ms() >= until) {
      found = matching(match);
      if (found.empty()) return {};
      return make_error(ErrorKind::state,
                        std::to_string(found.size()) + " processes did not end on SIGKILL, among them the process " +
                            std::to_string(found.begin()->first),
                        "see their states with ps; a process in state D waits for a device or a network disk");
    }
  }
}

bool end_process(pid_t pid, std::uint64_t start_time, int signal, std::int64_t grace_ms) {
  int fd = open_process(pid, start_time);
  if (fd < 0) return true;
  syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
  bool gone = wait_gone(fd, grace_ms);
  close(fd);
  return gone;
}

}  // namespace rille
