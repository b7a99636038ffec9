#include "runtime/compute/data/image_resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rille::data {

namespace {

struct Taps {
  std::vector<int> first, count;  // of each output: the first pixel that contributes, and how many do
  std::vector<float> weights;     // `most` for each output
  std::size_t most = 0;
};

// The axis in pixels of a part that begins at `part_first` of the image at 1 / divisor.
Taps taps_of(const Axis& axis, int divisor, int part_first, int part_size) {
  const double scale = axis.scale / divisor, width = std::max(scale, 1.0);
  const int low = std::max(axis.low / divisor - part_first, 0);
  const int high = std::min((axis.high + divisor - 1) / divisor - part_first, part_size);
  Taps taps;
  taps.most = static_cast<std::size_t>(std::ceil(width)) * 2 + 1;
  taps.weights.resize(taps.most * static_cast<std::size_t>(axis.outputs));
  for (int i = 0; i < axis.outputs; ++i) {
    const double middle = axis.start / divisor - part_first + (i + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(std::floor(middle - width + 0.5)), low, high - 1);
    const int end = std::clamp(static_cast<int>(std::floor(middle + width + 0.5)), first + 1, high);
    float* const weights = taps.weights.data() + taps.most * static_cast<std::size_t>(i);
    double sum = 0;
    for (int k = first; k < end; ++k) sum += std::max(0.0, 1 - std::abs(k + 0.5 - middle) / width);
    for (int k = first; k < end; ++k)
      weights[k - first] = static_cast<float>(sum > 0 ? std::max(0.0, 1 - std::abs(k + 0.5 - middle) / width) / sum
                                                      : 1.0 / (end - first));
    taps.first.push_back(first);
    taps.count.push_back(end - first);
  }
  return taps;
}

// GCC's and Clang's vectors: at -O2 the compiler makes none of a loop of unknown length.
using Floats = float __attribute__((vector_size(32)));
using Bytes = std::uint8_t __attribute__((vector_size(8)));
constexpr std::size_t lanes = 8;

// sum = the weighted sum of `count` rows of `values` bytes that follow each other.
void add_rows(const std::uint8_t* rows, std::size_t values, const float* weights, int count, float* sum) {
  std::size_t v = 0;
  for (; v + lanes <= values; v += lanes) {
    Floats total{};
    const std::uint8_t* from = rows + v;
    for (int k = 0; k < count; ++k, from += values) {
      Bytes bytes;
      std::memcpy(&bytes, from, sizeof bytes);
      total += __builtin_convertvector(bytes, Floats) * weights[k];
    }
    std::memcpy(sum + v, &total, sizeof total);
  }
  for (; v < values; ++v) {
    float total = 0;
    for (int k = 0; k < count; ++k)
      total += static_cast<float>(rows[v + static_cast<std::size_t>(k) * values]) * weights[k];
    sum[v] = total;
  }
}

}  // namespace

std::array<int, 2> Axis::needed() const {
  const double width = std::max(scale, 1.0), last = start + scale * outputs;
  const int first = std::clamp(static_cast<int>(std::floor(start + scale / 2 - width)), low, high - 1);
  return {first, std::clamp(static_cast<int>(std::ceil(last - scale / 2 + width)), first + 1, high)};
}

void resize(const Pixels& pixels, const Axis& x, const Axis& y, const Normal& normal, bool mirrored, float* out) {
  const Taps columns = taps_of(x, pixels.divisor, pixels.left, pixels.width);
  const Taps rows = taps_of(y, pixels.divisor, pixels.top, pixels.height);
  const std::size_t row_values = std::size_t{3} * static_cast<std::size_t>(pixels.width);
  const auto width = static_cast<std::size_t>(x.outputs), plane = width * static_cast<std::size_t>(y.outputs);
  std::vector<float> sum(row_values);
  for (std::size_t i = 0; i < static_cast<std::size_t>(y.outputs); ++i) {
    add_rows(pixels.rgb.data() + static_cast<std::size_t>(rows.first[i]) * row_values, row_values,
             rows.weights.data() + i * rows.most, rows.count[i], sum.data());
    for (std::size_t j = 0; j < width; ++j) {
      const float* from = sum.data() + std::size_t{3} * static_cast<std::size_t>(columns.first[j]);
      const float* const weights = columns.weights.data() + j * columns.most;
      float red = 0, green = 0, blue = 0;
      for (int k = 0; k < columns.count[j]; ++k, from += 3)
        red += from[0] * weights[k], green += from[1] * weights[k], blue += from[2] * weights[k];
      float* const to = out + i * width + (mirrored ? width - 1 - j : j);
      to[0] = red * normal.factor[0] + normal.offset[0];
      to[plane] = green * normal.factor[1] + normal.offset[1];
      to[2 * plane] = blue * normal.factor[2] + normal.offset[2];
    }
  }
}

}  // namespace rille::data
