// The messages between two machines that pass on an object (share.hpp), inside of TLS: a request and an answer have 16
// bytes each. A request names a part by its bytes in the object. The answer to it is `bytes`, after which exactly these
// bytes follow, or `gone`; before it `waits` may come any number of times. Integers are little endian. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::agent {

inline constexpr std::size_t peer_message_bytes = 16;
inline constexpr std::int64_t peer_part_bytes_max = 64 << 20;  // of one request: the side that answers holds them

struct PeerRequest {
  std::int64_t begin = 0, end = 0;
};
struct PeerAnswer {
  enum class Kind : std::uint8_t { waits = 1, bytes = 2, gone = 3 } kind = Kind::gone;
  std::int64_t got_bytes = 0;  // of waits: how much of the object the other machine has
};

std::string encode_peer(const PeerRequest& request);
std::string encode_peer(const PeerAnswer& answer);
// Error integrity: not such a message, or a number out of range.
Result<PeerRequest> peer_request_from(std::string_view message);
Result<PeerAnswer> peer_answer_from(std::string_view message);

}  // namespace rille::agent
