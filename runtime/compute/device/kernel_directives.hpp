// What the preprocessor's lines of a kernel's source say without a preprocessor: which words stand below #if 0, which
// are a macro's text, and which macros stand for __global__. A condition that is no plain number may hold: what is
// below it counts. Private to kernel_source.cpp. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/compute/device/kernel_token.hpp"

namespace rille::device {

struct Directives {
  std::vector<bool> aside;  // of each word: below #if 0, or of a macro's text
  struct Word {
    std::string_view name;
    bool is_c = false;  // extern "C" stands in it
  };
  std::vector<Word> global;    // #define KERNEL extern "C" __global__ void
  bool makes_kernels = false;  // a macro with parameters has __global__ in it

  const Word* find(std::string_view name) const;
};

Directives directives_of(std::string_view text, const std::vector<Token>& tokens);

}  // namespace rille::device
