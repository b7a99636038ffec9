#include "runtime/compute/device/tool_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/compute/device/processor_clock.hpp"
#include "runtime/compute/device/tree_time.hpp"

namespace rille::device {

namespace {

constexpr std::size_t output_bytes_max = 64 << 10;
constexpr int look_every_ms = 10;

// Returns false if stopped before the end.
bool read_all(int from, std::string& text, const std::function<bool()>& stopped) {
  char piece[4096];
  while (text.size() < output_bytes_max) {
    pollfd wait{from, POLLIN, 0};
    if (stopped && ::poll(&wait, 1, look_every_ms) <= 0) {
      if (stopped()) return false;
      continue;
    }
    const auto n = ::read(from, piece, sizeof piece);
    if (n > 0) text.append(piece, std::size_t(n));
    else if (n == 0 || errno != EINTR) break;
  }
  return true;
}

}  // namespace

std::string output_of(Spawn what, int from, const std::function<bool()>& stopped) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) what.files.emplace_back(standard == from ? ends[1] : nothing, standard);
  const auto child = spawn(what);
  ::close(ends[1]);
  ::close(nothing);
  std::string text;
  const bool whole = child && read_all(ends[0], text, stopped);
  ::close(ends[0]);
  if (!child) return "";
  if (stopped) ::kill(*child, SIGKILL);  // it may have closed its output without ending
  rusage used{};
  while (::wait4(*child, nullptr, 0, &used) < 0 && errno == EINTR) {}
  ProcessorClock::add(processor_ns(used));
  return whole ? text : "";
}

}  // namespace rille::device
