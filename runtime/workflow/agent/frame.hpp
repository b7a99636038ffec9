// Frames: what travels between runner, agent and worker. On the wire: length (u32, little endian, of all that follows),
// type (1 byte), header length (u32), header (JSON, an object), then raw bytes to the end.
// After a malformed frame the parser stays in error, since no later frame boundary is known.
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
// Limits of a result, progress or checkpoint, so that any frame that carries them stays below the frame limit.
inline constexpr std::size_t result_bytes_max = frame_bytes_max - (2u << 20);
inline constexpr std::size_t event_bytes_max = 256u << 10;
inline constexpr std::size_t chunk_bytes = 1u << 20;  // of files

enum class FrameType : std::uint8_t {
  hello = 1,     // first, both ways: {protocol, build, ..}
  request = 2,   // {id, op, ..}
  response = 3,  // {id, value} or {id, error}
  event = 4,     // {id, event, ..}; also between a worker and its agent
  ping = 5,      // {}: heartbeat
  error = 6,     // {error}: the last frame of a side that closes with an error
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
