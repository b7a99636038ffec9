// Evaluates preprocessor lines of a kernel's source without a preprocessor: which tokens are below #if 0, which belong
// to a macro's definition, and which macros stand for __global__. A branch whose condition is not a plain number may be
// compiled: the tokens in it count. Private to kernel_source.cpp. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/compute/device/kernel_token.hpp"

namespace rille::device {

struct Directives {
  std::vector<bool> aside;  // per token: whether it is below #if 0 or in a macro's definition
  struct Word {
    std::string_view name;
    bool is_c = false;  // whether the macro contains extern "C"
  };
  std::vector<Word> global;    // macros such as #define KERNEL extern "C" __global__ void
  bool makes_kernels = false;  // whether a macro with parameters contains __global__

  const Word* find(std::string_view name) const;
};

Directives directives_of(std::string_view text, const std::vector<Token>& tokens);

}  // namespace rille::device
