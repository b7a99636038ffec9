#include "runtime/compute/data/image_codec.hpp"

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstdlib>
#include <cstring>
#include <optional>

namespace rille::data {

namespace {

Error undecodable(const std::string& name, std::string_view why) {
  return make_error(ErrorKind::integrity, fmt::format("the image '{}' cannot be decoded: {}", name, why),
                    "replace it or remove it; a data set passes over such images with skip_damaged = true");
}

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }
bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

std::optional<Error> too_large(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width * height <= pixels_max) return std::nullopt;
  return undecodable(name, fmt::format("it has {} x {} pixels, the limit is {} in all", width, height, pixels_max));
}

// libjpeg leaves by longjmp, which runs no destructors: the functions that call setjmp have none to run.
struct JpegFailure {
  jpeg_error_mgr manager{};
  std::jmp_buf out;
  char message[JMSG_LENGTH_MAX] = "";
};

JpegFailure& failure_of(j_common_ptr info) { return *reinterpret_cast<JpegFailure*>(info->err); }

void leave(j_common_ptr info) {
  JpegFailure& failure = failure_of(info);
  failure.manager.format_message(info, failure.message);
  std::longjmp(failure.out, 1);
}

void handle_by_leaving(JpegFailure& failure) {
  jpeg_std_error(&failure.manager);
  failure.manager.error_exit = leave;
  failure.manager.output_message = [](j_common_ptr) {};
  failure.manager.emit_message = [](j_common_ptr info, int level) {
    if (level < 0) leave(info);
  };
}

class JpegReader {
 public:
  JpegReader() {
    handle_by_leaving(failure_);
    info_.err = &failure_.manager;
  }
  JpegReader(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info_); }

  // Each false: why() says why.
  bool open(std::string_view bytes) {
    if (setjmp(failure_.out)) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    progress_.progress_monitor = [](j_common_ptr info) {
      if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= scans_max) return;
      std::snprintf(failure_of(info).message, JMSG_LENGTH_MAX, "it has more than %d scans", scans_max);
      std::longjmp(failure_of(info).out, 1);
    };
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  ImageSize size() const { return {static_cast<int>(info_.image_width), static_cast<int>(info_.image_height)}; }
  // A progressive image's coefficients are all in memory before its first pixel.
  std::int64_t coefficient_bytes() {
    if (!jpeg_has_multiple_scans(&info_)) return 0;
    return std::int64_t{2} * info_.image_width * info_.image_height * info_.num_components;
  }
  bool start(int divisor) {
    if (setjmp(failure_.out)) return false;
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(divisor);
    jpeg_start_decompress(&info_);
    return true;
  }
  ImageSize scaled() const { return {static_cast<int>(info_.output_width), static_cast<int>(info_.output_height)}; }
  bool inks() const { return info_.out_color_space == JCS_CMYK; }
  // Narrows the rows to the columns from `left` on, which it moves to the left, and returns in `width` how many.
  bool narrow(int& left, int& width) {
    if (setjmp(failure_.out)) return false;
    JDIMENSION first = static_cast<JDIMENSION>(left), columns = static_cast<JDIMENSION>(width);
    jpeg_crop_scanline(&info_, &first, &columns);
    left = static_cast<int>(first), width = static_cast<int>(columns);
    return true;
  }
  bool skip(int rows) {
    if (setjmp(failure_.out)) return false;
    jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(rows));
    return true;
  }
  bool read_row(std::uint8_t* into) {
    if (setjmp(failure_.out)) return false;
    JSAMPROW row = into;
    jpeg_read_scanlines(&info_, &row, 1);
    return true;
  }
  const char* why() const { return failure_.message; }

 private:
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  JpegFailure failure_;
};

// From Adobe's inverted inks to RGB.
void from_inks(const std::uint8_t* inks, int width, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, inks += 4)
    for (int c = 0; c < 3; ++c) *rgb++ = static_cast<std::uint8_t>((inks[c] * inks[3] + 127) / 255);
}

// A range of pixels, from full size to 1 / divisor, `spare` pixels wider on both sides, and at most [0, whole).
struct Range {
  int first, count;
  Range(int from, int size, int divisor, int spare, int whole) {
    first = std::clamp(from / divisor - spare, 0, whole - 1);
    count = std::clamp((from + size + divisor - 1) / divisor + spare, first + 1, whole) - first;
  }
};

Result<Pixels> decode_jpeg(std::string_view bytes, const std::string& name, const PixelBox& box, int divisor_max,
                           const std::shared_ptr<MemoryUse>& memory) {
  JpegReader reader;
  if (!reader.open(bytes)) return undecodable(name, reader.why());
  if (auto error = too_large(name, reader.size().width, reader.size().height)) return *error;
  const auto take = [&](std::int64_t n) { return MemoryHeld::take(memory, MemoryUse::Part::tensors, n); };
  RILLE_TRY(const MemoryHeld coefficients, take(reader.coefficient_bytes()));
  Pixels out;
  while (out.divisor < 8 && 2 * out.divisor <= divisor_max) out.divisor *= 2;
  if (!reader.start(out.divisor)) return undecodable(name, reader.why());
  // Colours are interpolated from their neighbours, so the cut has to lie two pixels beside the box to change nothing.
  constexpr int spare = 2;
  Range columns(box.left, box.width, out.divisor, spare, reader.scaled().width);
  const Range rows(box.top, box.height, out.divisor, spare, reader.scaled().height);
  if (columns.count < reader.scaled().width && !reader.narrow(columns.first, columns.count))
    return undecodable(name, reader.why());
  out.left = columns.first, out.top = rows.first, out.width = columns.count, out.height = rows.count;
  const auto row_bytes = std::size_t{3} * static_cast<std::size_t>(out.width);
  RILLE_TRY(out.held, take(static_cast<std::int64_t>(row_bytes) * out.height + 4 * out.width));
  out.rgb.resize(row_bytes * static_cast<std::size_t>(out.height));
  std::vector<std::uint8_t> inks(reader.inks() ? static_cast<std::size_t>(out.width) * 4 : 0);
  if (rows.first > 0 && !reader.skip(rows.first)) return undecodable(name, reader.why());
  for (std::size_t y = 0; y < static_cast<std::size_t>(out.height); ++y) {
    std::uint8_t* const row = out.rgb.data() + y * row_bytes;
    if (!reader.read_row(reader.inks() ? inks.data() : row)) return undecodable(name, reader.why());
    if (reader.inks()) from_inks(inks.data(), out.width, row);
  }
  return out;
}

struct PngReader {
  png_image image{};
  explicit PngReader() { image.version = PNG_IMAGE_VERSION; }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_image_free(&image); }
  bool open(std::string_view bytes) { return png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()); }
};

Result<Pixels> decode_png(std::string_view bytes, const std::string& name, const std::shared_ptr<MemoryUse>& memory) {
  PngReader reader;
  if (!reader.open(bytes)) return undecodable(name, reader.image.message);
  if (auto error = too_large(name, reader.image.width, reader.image.height)) return *error;
  const std::size_t count = std::size_t{reader.image.width} * reader.image.height;
  const bool transparent = reader.image.format & PNG_FORMAT_FLAG_ALPHA;
  const std::size_t channels = transparent ? 4 : 3;
  reader.image.format = transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  Pixels out;
  RILLE_TRY(out.held, MemoryHeld::take(memory, MemoryUse::Part::tensors, static_cast<std::int64_t>(count * channels)));
  out.width = static_cast<int>(reader.image.width), out.height = static_cast<int>(reader.image.height);
  out.rgb.resize(count * channels);
  if (!png_image_finish_read(&reader.image, nullptr, out.rgb.data(), 0, nullptr))
    return undecodable(name, reader.image.message);
  if (transparent)
    for (std::size_t i = 0; i < count; ++i) std::memmove(out.rgb.data() + 3 * i, out.rgb.data() + 4 * i, 3);
  return out;
}

class JpegWriter {
 public:
  JpegWriter() {
    handle_by_leaving(failure_);
    info_.err = &failure_.manager;
  }
  JpegWriter(const JpegWriter&) = delete;
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);
  }
  bool write(const std::uint8_t* rgb, ImageSize size, int quality) {
    if (setjmp(failure_.out)) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &bytes_, &count_);
    info_.image_width = static_cast<JDIMENSION>(size.width), info_.image_height = static_cast<JDIMENSION>(size.height);
    info_.input_components = 3;
    info_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    while (info_.next_scanline < info_.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(rgb) + std::size_t{3} * info_.next_scanline * info_.image_width;
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_), count_}; }
  const char* why() const { return failure_.message; }

 private:
  jpeg_compress_struct info_{};
  JpegFailure failure_;
  unsigned char* bytes_ = nullptr;
  unsigned long count_ = 0;  // NOLINT: libjpeg's type
};

}  // namespace

Result<ImageSize> image_size(std::string_view bytes, const std::string& name) {
  ImageSize size;
  if (is_jpeg(bytes)) {
    JpegReader reader;
    if (!reader.open(bytes)) return undecodable(name, reader.why());
    size = reader.size();
  } else if (is_png(bytes)) {
    PngReader reader;
    if (!reader.open(bytes)) return undecodable(name, reader.image.message);
    if (auto error = too_large(name, reader.image.width, reader.image.height)) return *error;
    size = {static_cast<int>(reader.image.width), static_cast<int>(reader.image.height)};
  } else {
    return undecodable(name, bytes.empty() ? "it is empty" : "it is neither JPEG nor PNG");
  }
  if (auto error = too_large(name, size.width, size.height)) return *error;
  return size;
}

Result<Pixels> decode_image(std::string_view bytes, const std::string& name, const PixelBox& box, int divisor_max,
                            const std::shared_ptr<MemoryUse>& memory) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, name, box, divisor_max, memory);
  if (is_png(bytes)) return decode_png(bytes, name, memory);
  return undecodable(name, "it is neither JPEG nor PNG");
}

Result<std::string> encode_jpeg(const std::uint8_t* rgb, ImageSize size, int quality) {
  JpegWriter writer;
  if (!writer.write(rgb, size, quality))
    return make_error(ErrorKind::invalid,
                      fmt::format("cannot encode {} x {} pixels as JPEG: {}", size.width, size.height, writer.why()));
  return std::string(writer.bytes());
}

}  // namespace rille::data
