#include "runtime/workflow/agent/peer_wire.hpp"

#include "runtime/workflow/agent/heard.hpp"

namespace rille::agent {

namespace {

void put_u64(std::string& out, std::uint64_t n) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((n >> shift) & 255);
}

std::uint64_t get_u64(std::string_view bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = 8; i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
}

Error not_of_a_peer(const char* what) {
  return make_error(ErrorKind::integrity, std::string("another machine of the run sent ") + what);
}

}  // namespace

std::string encode_peer(const PeerRequest& request) {
  std::string out;
  put_u64(out, static_cast<std::uint64_t>(request.begin));
  put_u64(out, static_cast<std::uint64_t>(request.end));
  return out;
}

std::string encode_peer(const PeerAnswer& answer) {
  std::string out;
  put_u64(out, static_cast<std::uint64_t>(answer.kind));
  put_u64(out, static_cast<std::uint64_t>(answer.got_bytes));
  return out;
}

Result<PeerRequest> peer_request_from(std::string_view message) {
  if (message.size() != peer_message_bytes) return not_of_a_peer("no whole request");
  const std::uint64_t begin = get_u64(message), end = get_u64(message.substr(8));
  if (begin >= end || end > static_cast<std::uint64_t>(file_bytes_max) ||
      end - begin > static_cast<std::uint64_t>(peer_part_bytes_max))
    return not_of_a_peer("a request for bytes that no object has");
  return PeerRequest{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
}

Result<PeerAnswer> peer_answer_from(std::string_view message) {
  if (message.size() != peer_message_bytes) return not_of_a_peer("no whole answer");
  const std::uint64_t kind = get_u64(message), got = get_u64(message.substr(8));
  if (kind < 1 || kind > 3 || got > static_cast<std::uint64_t>(file_bytes_max))
    return not_of_a_peer("an answer that there is not");
  return PeerAnswer{static_cast<PeerAnswer::Kind>(kind), static_cast<std::int64_t>(got)};
}

}  // namespace rille::agent
