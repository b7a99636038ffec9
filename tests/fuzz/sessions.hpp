// What programs share that run thousands of seeded sessions against a liar: arguments, dice, the listing of a tree, and
// what a process uses. A fault is a crash, a sanitizer's report, or fuzz_check's abort; the seed is printed first.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/hash.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace sessions {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t kept_bytes_max = 700LL << 20, peak_bytes_max = 2'000LL << 20;  // freed memory is kept a while
#else
constexpr std::int64_t kept_bytes_max = 48LL << 20, peak_bytes_max = 700LL << 20;
#endif

struct Dice {
  std::mt19937_64 engine;
  explicit Dice(std::uint64_t seed) : engine(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::size_t below(std::size_t n) { return n ? engine() % n : 0; }
  bool chance(double p) { return static_cast<double>(engine() >> 11) * 0x1.0p-53 < p; }
  template <class List>
  auto& pick(List& list) {
    return list[below(list.size())];
  }
  std::string bytes(std::size_t n) {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(engine());
    return out;
  }
};

// A value that no honest program sends here.
inline rille::Value strange(Dice& dice, const std::vector<std::string>& texts, int depth = 0) {
  static const std::vector<double> numbers = {-1, 0, 0.5, 1e9, 2147483648.0, 9.1e18, -9.1e18, 1e300, -1e308};
  static const std::vector<const char*> keys = {"path",        "size",    "mode",  "sha256", "directory", "entries",
                                                "id",          "offset",  "have",  "kind",   "message",   "cause",
                                                "retry_after", "outcome", "state", "x"};
  if (depth < 3 && dice.chance(0.25)) {
    rille::Value out{rille::Value::Object{}};
    for (std::size_t n = dice.below(4); n > 0; --n) out.set(dice.pick(keys), strange(dice, texts, depth + 1));
    return out;
  }
  if (depth < 3 && dice.chance(0.2)) {
    rille::Value::Array out;
    for (std::size_t n = dice.below(5); n > 0; --n) out.push_back(strange(dice, texts, depth + 1));
    return out;
  }
  switch (dice.below(5)) {
    case 0: return rille::Value();
    case 1: return rille::Value(dice.chance(0.5));
    case 2: return rille::Value(dice.pick(numbers));
    default: return rille::Value(dice.pick(texts));
  }
}

// Each name below `root` with its kind, mode, size and digest, but for what `left_out` is the beginning of.
inline std::map<std::string, std::string> listing(const std::string& root, const std::string& left_out) {
  std::map<std::string, std::string> out;
  for (auto it = std::filesystem::recursive_directory_iterator(root); it != decltype(it)(); ++it) {
    const std::string path = it->path();
    if (path.starts_with(left_out)) {
      it.disable_recursion_pending();
      continue;
    }
    struct stat st {};
    ::lstat(path.c_str(), &st);
    const auto print = S_ISREG(st.st_mode) ? rille::store::fingerprint_file(path) : rille::store::Fingerprint{};
    out[path] = std::to_string(st.st_mode) + " " + std::to_string(st.st_size) + " " + (print ? print->xxh3 : "?");
  }
  return out;
}

inline std::int64_t status_bytes(const char* field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) return std::atoll(line.c_str() + std::strlen(field) + 1) << 10;
  return 0;
}
inline std::size_t open_files() {
  std::size_t n = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd"); it != decltype(it)(); ++it) ++n;
  return n;
}

struct Range {
  std::uint64_t first = 1, count = 300;
};
// --sessions N, --seed FIRST
inline Range range_of(int argc, char** argv) {
  Range out;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--sessions") == 0) out.count = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) out.first = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return out;
}

// A folder in memory, where there is one: thousands of syncs to a disk take minutes.
inline std::string folder_for(const char* name) {
  const std::string parent = std::filesystem::exists("/dev/shm") ? "/dev/shm/" : "/tmp/";
  std::string out = parent + name + "-XXXXXX";
  fuzz_check(mkdtemp(out.data()) != nullptr, "a folder can be made");
  return out;
}

inline const char* current = "";
inline std::uint64_t current_seed = 0;
inline void tell_seed(int number) {
  std::fprintf(stderr, "%s: signal %d in the session of --seed %llu --sessions 1\n", current, number,
               static_cast<unsigned long long>(current_seed));
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Runs the sessions one after another, and checks that nothing stays behind: memory and open files.
template <class Session>
void run_all(const char* name, Range range, Session session) {
  current = name;
  for (const int number : {SIGABRT, SIGSEGV, SIGALRM}) std::signal(number, tell_seed);
  const auto begun = std::chrono::steady_clock::now();
  std::map<std::string, std::uint64_t> ends;  // how often each way of ending was seen
  std::int64_t settled_bytes = 0;
  std::size_t settled_files = 0;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    current_seed = range.first + i;
    alarm(60);
    session(current_seed, ends);
    if (i == range.count / 4) settled_bytes = status_bytes("VmRSS"), settled_files = open_files();
  }
  alarm(0);
  const std::int64_t grown_bytes = status_bytes("VmRSS") - settled_bytes, peak_bytes = status_bytes("VmHWM");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf("%s: seeds %llu to %llu in %.0f s; peak %lld MiB, growth %lld MiB\n", name,
              static_cast<unsigned long long>(range.first), static_cast<unsigned long long>(current_seed), seconds,
              static_cast<long long>(peak_bytes >> 20), static_cast<long long>(grown_bytes >> 20));
  for (const auto& [what, count] : ends)
    std::printf("  %8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
  if (range.count < 100) return;
  fuzz_check(grown_bytes < kept_bytes_max && peak_bytes < peak_bytes_max, "memory is bounded");
  fuzz_check(open_files() <= settled_files + 8, "no file stays open");
}

}  // namespace sessions
