#include "runtime/compute/device/tree_time.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/compute/device/kernel_files.hpp"

namespace rille::device {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t processes_looked_at_max = 1000;

// Of the process and of those that it has waited for. proc(5): the fields 14 to 17, utime, stime, cutime and cstime.
std::int64_t ticks_of(pid_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid), 4096);
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  long user = 0, system = 0, users_children = 0, systems_children = 0;
  if (name_end != std::string::npos)
    std::sscanf(text->c_str() + name_end + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %ld %ld %ld", &user,
                &system, &users_children, &systems_children);
  return user + system + users_children + systems_children;
}

void add_children(pid_t pid, std::vector<pid_t>& to) {
  const auto text = read_small_file(fmt::format("/proc/{}/task/{}/children", pid, pid), 64 << 10);
  if (!text) return;
  for (const char* at = text->c_str(); to.size() < processes_looked_at_max;) {
    char* end = nullptr;
    const long child = std::strtol(at, &end, 10);
    if (end == at) return;
    to.push_back(pid_t(child));
    at = end;
  }
}

}  // namespace

std::int64_t processor_ns(const rusage& used) {
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * second_ns +
         (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * std::int64_t(1000);
}

// Reads a parent before its children, so that a child that ends meanwhile is not counted twice.
void TreeTime::look() {
  if (!tell_) return;
  std::int64_t ticks = 0;
  std::vector<pid_t> all{child_};
  for (std::size_t i = 0; i < all.size(); ++i) {
    ticks += ticks_of(all[i]);
    add_children(all[i], all);
  }
  grown_to(ticks * (second_ns / ::sysconf(_SC_CLK_TCK)));
}

void TreeTime::ended(const rusage& used) {
  if (tell_) grown_to(processor_ns(used));
}

void TreeTime::grown_to(std::int64_t ns) {
  if (ns <= told_ns_) return;
  tell_(ns - told_ns_);
  told_ns_ = ns;
}

}  // namespace rille::device
