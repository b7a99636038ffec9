// What ranks say to each other besides their numbers. While they meet, and when something is wrong: messages, a length
// (u32, little endian) and so much JSON, an object. Length 0 is a bell: look at the memory that we share. Before the
// numbers of an operation: a head, which says what operation it is and that all are at the same one.
//
// Everything that arrives is checked here; a stream with one bad message cannot be trusted any more.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/compute/collective/operation.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::collective {

inline constexpr std::size_t message_bytes_max = 256u << 10;

// invalid: longer than message_bytes_max.
Result<std::string> encode_message(const Value& value);
inline constexpr std::string_view bell{"\0\0\0\0", 4};

class MessageParser {
 public:
  // So many bytes are missing for the next step; never more than belong to one message.
  std::size_t wanted() const { return (buffer_.size() < 4 ? 4 : 4 + length()) - buffer_.size(); }
  // Up to wanted() bytes.
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // A whole message, if there is one; null: a bell. integrity: too long, or no JSON object.
  Result<std::optional<Value>> next();

 private:
  std::size_t length() const;
  std::string buffer_;
};

// At the beginning of each operation's bytes, each way.
inline constexpr std::size_t head_bytes = 112;
void encode_head(const Operation& op, std::uint64_t number, std::byte* to);
struct Head {
  Operation operation;
  std::uint64_t number = 0;  // operations of this kind between the two before it
};
// integrity: these bytes are none.
Result<Head> decode_head(const std::byte* from);

}  // namespace rille::collective
