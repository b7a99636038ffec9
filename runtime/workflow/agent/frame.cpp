#include "runtime/workflow/agent/frame.hpp"

#include <fmt/format.h>

#include "runtime/core/base/units.hpp"

namespace rille::agent {

namespace {
void put_u32(std::string& out, std::size_t n) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((n >> shift) & 255);
}

std::size_t get_u32(const char* p) {
  std::size_t n = 0;
  for (int i = 3; i >= 0; --i) n = n << 8 | static_cast<unsigned char>(p[i]);
  return n;
}
}  // namespace

Result<std::string> encode_frame(const Frame& frame) {
  std::string header = frame.header.to_json();
  std::size_t length = 5 + header.size() + frame.body.size();
  if (const std::size_t most = bytes_max_of(frame.type); length > most)
    return make_error(ErrorKind::invalid,
                      fmt::format("a message of {} is over the limit of {} (frame_bytes_max)",
                                  format_size_bytes(static_cast<std::int64_t>(length)),
                                  format_size_bytes(static_cast<std::int64_t>(most))),
                      "send large data as a file");
  std::string out;
  out.reserve(4 + length);
  put_u32(out, length);
  out += static_cast<char>(frame.type);
  put_u32(out, header.size());
  out += header;
  out += frame.body;
  return out;
}

Error FrameParser::fail(std::string message) {
  failed_ = make_error(ErrorKind::integrity, "agent protocol: " + message,
                       "another program writes to this channel, perhaps a login banner: silence it in the account's "
                       ".bashrc or .profile");
  failed_->code = broken_protocol;
  buffer_.clear();
  return *failed_;
}

Result<std::optional<Frame>> FrameParser::next() {
  if (failed_) return *failed_;
  const char* p = buffer_.data() + at_;
  std::size_t have = buffer_.size() - at_;
  std::optional<Frame> none;
  if (have >= 4) {
    // Check length and type at once, so that data of another protocol is refused without waiting for more bytes.
    std::size_t length = get_u32(p);
    if (have >= 5 && (p[4] < 1 || p[4] > static_cast<char>(FrameType::error)))
      return fail(fmt::format("a frame of unknown type {}", static_cast<unsigned char>(p[4])));
    const std::size_t most = have >= 5 ? bytes_max_of(static_cast<FrameType>(p[4])) : result_frame_bytes_max;
    if (length < 5 || length > most)
      return fail(fmt::format("a frame of {} bytes (at least 5, at most {}, frame_bytes_max)", length, most));
    if (have >= 4 + length) {
      std::size_t header_length = get_u32(p + 5);
      if (header_length > length - 5)
        return fail(fmt::format("a header of {} bytes in a frame of {}", header_length, length));
      Frame frame;
      frame.type = static_cast<FrameType>(p[4]);
      auto header = Value::from_json(std::string_view(p + 9, header_length));
      if (!header) return fail("a header that cannot be read: " + header.error().message);
      if (!header->as_object()) return fail("a header that is not an object");
      frame.header = std::move(*header);
      frame.body.assign(p + 9 + header_length, length - 5 - header_length);
      at_ += 4 + length;
      if (at_ > (1u << 20) || at_ == buffer_.size()) {
        buffer_.erase(0, at_);
        at_ = 0;
      }
      return std::optional<Frame>(std::move(frame));
    }
  }
  return none;
}

}  // namespace rille::agent
