// Resizes images by a triangle filter that widens with the reduction, as Pillow's and torchvision's bilinear filter
// with antialiasing does; intermediate values are not rounded. Pure functions; any thread.
#pragma once

#include <array>
#include <vector>

#include "runtime/compute/data/image_codec.hpp"

namespace rille::data {

// One axis of a resize. Output i covers [start + i * scale, start + (i + 1) * scale) of the full image; only pixels in
// [low, high) contribute.
struct Axis {
  double start = 0, scale = 1;
  int outputs = 1, low = 0, high = 1;
  // The pixels that contribute, as first and one past the last.
  std::array<int, 2> needed() const;
};

struct Normal {
  std::array<float, 3> factor{1, 1, 1}, offset{0, 0, 0};  // output = value * factor + offset, for red, green, blue
};

// Writes three planes of y.outputs * x.outputs values. `pixels` must have all that the axes need. mirrored: from right
// to left.
void resize(const Pixels& pixels, const Axis& x, const Axis& y, const Normal& normal, bool mirrored, float* out);

}  // namespace rille::data
