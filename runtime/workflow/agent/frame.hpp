// Frames: the messages between runner, agent and worker. A frame on the wire: its length (u32, little endian, without
// these four bytes), type (1 byte), header length (u32), header (a JSON object), then the body, raw bytes to the end.
// After a malformed frame the parser only returns errors, because it cannot know where the next frame begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille::agent {

inline constexpr int protocol_version = 1;
// The largest result of a call: as much as the journal keeps of any value (store::blob_bytes_max).
inline constexpr std::size_t result_bytes_max = 64u << 20;
inline constexpr std::size_t frame_bytes_max = 16u << 20;                             // but for results:
inline constexpr std::size_t result_frame_bytes_max = result_bytes_max + (2u << 20);  // a response or an event
// The largest progress or checkpoint.
inline constexpr std::size_t event_bytes_max = 256u << 10;
inline constexpr std::size_t chunk_bytes = 1u << 20;  // most bytes of a file in one frame

// The code of an error of kind integrity: the peer sent what the protocol does not allow. Another connection would end
// the same.
inline constexpr const char* broken_protocol = "broken_protocol";

enum class FrameType : std::uint8_t {
  hello = 1,     // {protocol, build, ..}: the first frame that each side sends
  request = 2,   // {id, op, ..}
  response = 3,  // {id, value} or {id, error}
  event = 4,     // {id, event, ..}: news about an attached call; also between a worker and its agent
  ping = 5,      // {}: the heartbeat
  error = 6,     // {error}: the last frame of a side that closes with an error
};

struct Frame {
  FrameType type = FrameType::ping;
  Value header = Value::Object{};
  std::string body;
};

// The most bytes of a frame of that type, without its length.
constexpr std::size_t bytes_max_of(FrameType type) {
  return type == FrameType::response || type == FrameType::event ? result_frame_bytes_max : frame_bytes_max;
}

// Returns the frame's bytes. Fails with `invalid` if they are more than its type may have.
Result<std::string> encode_frame(const Frame& frame);

class FrameParser {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // Returns the next whole frame, or nullopt if more bytes are needed. Fails with `integrity` if the frame is too
  // large, of unknown type, or malformed.
  Result<std::optional<Frame>> next();

 private:
  Error fail(std::string message);
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<Error> failed_;
};

}  // namespace rille::agent
