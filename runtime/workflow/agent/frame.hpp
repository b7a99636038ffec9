// Frames: what travels between runner, agent and worker. On the wire: length (u32, little endian, of all that follows),
// type (1 byte), header length (u32), header (JSON, an object), then raw bytes to the end.
// A parser that has met a bad frame stays in error: nothing after it can be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille::agent {

inline constexpr int protocol_version = 1;
inline constexpr std::size_t frame_bytes_max = 16u << 20;
// What a result, progress or checkpoint may take, so that any frame that carries them stays below the limit.
inline constexpr std::size_t result_bytes_max = frame_bytes_max - (2u << 20);
inline constexpr std::size_t event_bytes_max = 256u << 10;
inline constexpr std::size_t chunk_bytes = 1u << 20;  // of files

enum class FrameType : std::uint8_t {
  hello = 1,     // first, both ways: {protocol, build, ..}
  request = 2,   // {id, op, ..}
  response = 3,  // {id, value} or {id, error}
  event = 4,     // {id, event, ..}; also what a worker and its agent say to each other
  ping = 5,      // {}: I am here
  error = 6,     // {error}: the last frame of a side that gives up
};

struct Frame {
  FrameType type = FrameType::ping;
  Value header = Value::Object{};
  std::string body;
};

// invalid: larger than frame_bytes_max.
Result<std::string> encode_frame(const Frame& frame);

class FrameParser {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, or nothing yet. integrity: too large, of unknown type, or malformed.
  Result<std::optional<Frame>> next();

 private:
  Error fail(std::string message);
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<Error> failed_;
};

}  // namespace rille::agent
