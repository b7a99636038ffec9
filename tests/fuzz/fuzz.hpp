// What a fuzz target offers. A fault is a crash, a sanitizer's report, or fuzz_check's abort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::vector<std::string> fuzz_seeds();  // sound inputs
std::vector<std::string> fuzz_words();  // pieces of the grammar, to be put anywhere

inline void fuzz_check(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}
