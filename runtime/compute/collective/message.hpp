// Messages between ranks besides tensor data. At the rendezvous and on errors: a length (u32, little endian) and a JSON
// object of that length. Length 0 is a bell: check the shared memory. Before an operation's data: a head, which
// describes the operation, so that ranks can compare it.
//
// Everything received is validated here; after one bad message the stream cannot be trusted.
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
  // Bytes missing for the next step; never more than belong to one message.
  std::size_t wanted() const { return (buffer_.size() < 4 ? 4 : 4 + length()) - buffer_.size(); }
  // At most wanted() bytes.
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // A complete message, if there is one; null: a bell. integrity: too long, or not a JSON object.
  Result<std::optional<Value>> next();

 private:
  std::size_t length() const;
  std::string buffer_;
};

// Precedes each operation's data, in each direction.
inline constexpr std::size_t head_bytes = 112;
// The halves of a sendrecv are encoded separately.
void encode_head(const Operation& op, std::uint64_t number, std::byte* to);
struct Head {
  Operation operation;
  // a collective operation in the order that all ranks share; for send and recv, the message between the two ranks
  std::uint64_t number = 0;
};
// integrity: not a valid head.
Result<Head> decode_head(const std::byte* from);

}  // namespace rille::collective
