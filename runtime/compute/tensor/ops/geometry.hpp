// Sizes of sliding windows, for convolution and pooling.
#pragma once

#include <algorithm>
#include <string>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

inline std::string text_of(const Pair2& p) { return fmt::format("{{{}, {}}}", p[0], p[1]); }

// Converts a computed size; sizes that are too large are refused when the result is recorded.
inline std::int64_t as_size(__int128 n) { return n > INT64_MAX ? INT64_MAX : std::int64_t(n); }

inline std::int64_t windows(std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t padding,
                            std::int64_t dilation) {
  const __int128 room = __int128(size) + 2 * padding - __int128(window - 1) * dilation - 1;
  return room < 0 ? 0 : as_size(room / stride + 1);
}

// Limit of strides, paddings and dilations, which kernels store in 32 bits.
inline constexpr std::int64_t geometry_end = std::int64_t(1) << 30;

// Windows that cover only padding are useless, and oneDNN takes time and memory for each pixel of padding.
inline Result<void> need_padding(const char* op, std::int64_t padding, std::int64_t size, std::int64_t window,
                                 std::int64_t dilation) {
  const __int128 most = std::max<__int128>(1024, __int128(size) + __int128(window) * dilation);
  if (padding <= most) return success();
  return bad(
      fmt::format("{}: a padding of {}: expected at most {}, the image and the window", op, padding, as_size(most)));
}

inline Result<void> need_geometry(const char* op, const Pair2& stride, const Pair2& padding, const Pair2& dilation) {
  for (int k = 0; k < 2; ++k) {
    if (stride[k] >= 1 && padding[k] >= 0 && dilation[k] >= 1 &&
        std::max({stride[k], padding[k], dilation[k]}) < geometry_end)
      continue;
    return bad(fmt::format("{}: stride {}, padding {}, dilation {}: expected at least 1, 0, 1, and less than 2^30", op,
                           text_of(stride), text_of(padding), text_of(dilation)));
  }
  return success();
}

}  // namespace rille::tensor
