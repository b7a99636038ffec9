// Decodes JPEG (libjpeg-turbo) and PNG (libpng) into RGB, and encodes JPEG. The format is told by the first bytes, not
// by a name. The bytes come from outside: an image has at most `pixels_max` pixels and a progressive JPEG at most
// `scans_max` scans; a warning of libjpeg is an error, for it means that pixels were made up. CMYK becomes RGB as Adobe
// writes it (inverted); transparency is dropped. Any thread.
//
// Errors: integrity (damaged, of another format, too large), which names the image; memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"

namespace rille::data {

constexpr std::int64_t pixels_max = 100'000'000;
constexpr int scans_max = 64;

struct ImageSize {
  int width = 0, height = 0;
};

struct PixelBox {
  int left = 0, top = 0, width = 0, height = 0;
};

// A part of an image at 1 / `divisor` of its size. Pixel (x, y) of `rgb` covers the pixels from ((left + x) * divisor,
// (top + y) * divisor) of the full image.
struct Pixels {
  int left = 0, top = 0, width = 0, height = 0, divisor = 1;
  std::vector<std::uint8_t> rgb;
  MemoryHeld held;
};

// `name` is for the messages.
Result<ImageSize> image_size(std::string_view bytes, const std::string& name);

// Decodes at least the box, at 1 / divisor_max of the size or larger: 1, 2, 4 or 8. A PNG is decoded whole.
Result<Pixels> decode_image(std::string_view bytes, const std::string& name, const PixelBox& box, int divisor_max,
                            const std::shared_ptr<MemoryUse>& memory);

// rgb: width * height * 3 bytes.
Result<std::string> encode_jpeg(const std::uint8_t* rgb, ImageSize size, int quality);

}  // namespace rille::data
