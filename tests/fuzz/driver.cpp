// Runs a fuzz target on mutations of its seeds:
//   NAME_fuzz N                        N of them, always the same ones
//   NAME_fuzz --seconds S [--seed N]   for that long, others each time; the seed is printed first
//   NAME_fuzz N FILE                   on that file alone, to repeat a fault
// On a fault the input is left in fuzz-input.bin in the working directory. Seeds come from the target and from
// corpus/NAME/, words from the target and from numbers.dict.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/kept.hpp"

namespace {

constexpr unsigned input_s_max = 30;  // an input that takes longer hangs

std::string current;

void keep_input(int signal_number) {
  if (FILE* out = std::fopen("fuzz-input.bin", "wb")) {
    std::fwrite(current.data(), 1, current.size(), out);
    std::fclose(out);
    std::fprintf(stderr, "the input is in fuzz-input.bin\n");
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

using Random = std::mt19937_64;
std::size_t below(Random& r, std::size_t n) { return n ? r() % n : 0; }

// Puts a word of numbers.dict in the place of the first number at or after `at`. What a parser does with a number is
// where most of its faults are, and few random changes of bytes leave one.
void change_number(std::string& s, std::size_t at, const std::string& word) {
  const std::size_t begin = s.find_first_of("0123456789", at);
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(s.find_first_not_of("0123456789.", begin), s.size());
  s.replace(begin, end - begin, word);
}

void mutate(std::string& s, Random& r, const std::vector<std::string>& seeds, const std::vector<std::string>& words,
            const std::vector<std::string>& numbers) {
  std::size_t at = below(r, s.size() + 1), n = below(r, 16);
  switch (r() % 10) {
    case 0:
      if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << (r() % 8)));
      break;
    case 1:
      if (at < s.size()) s[at] = static_cast<char>(r());
      break;
    case 2: s.erase(at, n); break;
    case 3: s.insert(at, s.substr(below(r, s.size()), n)); break;
    case 4: s.resize(at); break;
    case 5:
      if (!words.empty()) s.insert(at, words[below(r, words.size())]);
      break;
    case 6:
      if (!words.empty()) s.replace(at, std::min(n, s.size() - at), words[below(r, words.size())]);
      break;
    case 7: {
      const std::string& other = seeds[below(r, seeds.size())];
      s = s.substr(0, at) + other.substr(below(r, other.size()));
      break;
    }
    default: change_number(s, at, numbers[below(r, numbers.size())]);
  }
}

void run(const std::string& input) {
  current = input;
  // A copy of exactly that size, so that a sanitizer sees a byte read past the end.
  std::vector<std::uint8_t> exact(input.begin(), input.end());
  alarm(input_s_max);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

struct Asked {
  long count = 20000;  // of mutations, unless there are seconds
  long seconds = 0;
  std::uint64_t seed = 1;
};

Asked asked_of(int argc, char** argv) {
  Asked out;
  if (argc == 2) out.count = std::atol(argv[1]);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) out.seconds = std::atol(argv[i + 1]), out.seed = std::random_device()();
    if (std::strcmp(argv[i], "--seed") == 0) out.seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGSEGV, keep_input);
  std::signal(SIGABRT, keep_input);
  std::signal(SIGALRM, keep_input);
  if (argc == 3 && argv[1][0] != '-') {
    run(fuzz_file(argv[2]));
    return 0;
  }
  const Asked asked = asked_of(argc, argv);
  if (asked.seconds) {
    std::printf("--seconds %ld --seed %llu\n", asked.seconds, static_cast<unsigned long long>(asked.seed));
    std::fflush(stdout);
  }
  std::vector<std::string> seeds = fuzz_seeds(), words = fuzz_words();
  const std::vector<std::string> numbers = fuzz_numbers(), kept = fuzz_corpus();
  fuzz_check(!numbers.empty(), "numbers.dict has numbers");
  seeds.insert(seeds.end(), kept.begin(), kept.end());
  for (const std::string& seed : seeds) run(seed);
  Random random(asked.seed);
  long tried = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked.seconds);
  for (; asked.seconds ? std::chrono::steady_clock::now() < end : tried < asked.count; ++tried) {
    std::string input = seeds[below(random, seeds.size())];
    for (std::size_t changes = 1 + below(random, 4); changes > 0; --changes)
      mutate(input, random, seeds, words, numbers);
    run(input);
  }
  std::printf("%ld inputs, %zu of them kept\n", tried + static_cast<long>(seeds.size()), kept.size());
}
