// What machines that pass objects on read of each other and of the runner, and the runner of them: messages, digests,
// news and orders. What is accepted is in its limits, and says the same again. Their TLS is that of ranks (ranks_fuzz);
// what follows a proof, lies of a machine that has the key, is in unit.agent (share_test.cpp).
#include "runtime/core/net/private_network.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/agent/peer_wire.hpp"
#include "runtime/workflow/agent/peers.hpp"
#include "runtime/workflow/agent/pull.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::agent;

namespace {

void check_messages(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), peer_message_bytes))) {
    const std::string_view message = bytes.substr(0, peer_message_bytes);
    if (const auto asked = peer_request_from(message)) {
      fuzz_check(asked->begin >= 0 && asked->begin < asked->end && asked->end <= file_bytes_max &&
                     asked->end - asked->begin <= peer_part_bytes_max,
                 "a part is in an object, and not too large");
      fuzz_check(encode_peer(*asked) == message, "a request says the same again");
    }
    if (const auto answer = peer_answer_from(message)) {
      fuzz_check(answer->got_bytes >= 0 && answer->got_bytes <= file_bytes_max, "nobody has more than there is");
      fuzz_check(encode_peer(*answer) == message, "an answer says the same again");
    }
  }
}

void check_digests(std::string_view bytes) {
  const auto digests = digests_from(bytes);
  if (!digests) return;
  for (const auto& [part, digest] : *digests)
    fuzz_check(part < share_parts_max && digest.size() == digest_bytes, "a digest is of a part");
  const auto again = digests_from(encode_digests(*digests));
  fuzz_check(again && *again == *digests, "digests say the same again");
}

void check_news(const Value& value) {
  if (const auto news = share_news_from(value)) {
    fuzz_check(news->addresses.size() <= Peers::addresses_max, "a machine has few addresses");
    for (const std::string& address : news->addresses)
      fuzz_check(net::is_private_address(address) && address.find_first_of(" /@%") == std::string::npos,
                 "machines are sent to private addresses only");
    fuzz_check(news->part >= 0 && news->part < static_cast<std::int64_t>(share_parts_max), "a part is one");
    fuzz_check(news->version.empty() || news->version.starts_with('"'), "a version is an ETag");
  }
  if (const auto share = pull_share_from(value, ""); share && *share)
    fuzz_check((*share)->id.size() == PeerLink::id_chars && (*share)->key.size() == PeerLink::key_chars,
               "a share has an id and a key");
  if (const auto pulled = pulled_from(value, PullRequest(), 3))
    for (const int liar : pulled->liars) fuzz_check(liar >= 0 && liar < 3, "a liar is a machine that was named");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_messages(bytes);
  check_digests(bytes);
  if (const auto value = Value::from_json(bytes); value && value->as_object()) check_news(*value);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string hex32(32, 'a'), hex64(64, '0');
  return {encode_peer(PeerRequest{16 << 20, 32 << 20}),
          encode_peer(PeerAnswer{PeerAnswer::Kind::waits, 7}) + encode_peer(PeerAnswer{PeerAnswer::Kind::bytes, 9}),
          encode_digests({{0, std::string(32, 'x')}, {300, std::string(32, 'y')}}),
          R"({"addresses":["10.0.0.1:40000","[fd00::1]:40000","192.168.1.2:1024"]})",
          R"({"share":")" + hex32 + R"(","part":3,"sha256":")" + hex64 + R"("})",
          R"({"share":")" + hex32 + R"(","size":105000,"version":"\"v1\""})",
          R"({"share":{"id":")" + hex32 + R"(","key":")" + hex64 + R"(","machines":[["10.0.0.1:40000"],[]]}})",
          R"({"size":7,"moved":0,"shared":7,"version":"\"v\"","sha256":")" + hex64 + R"(","liars":[0,2]})"};
}

std::vector<std::string> fuzz_words() {
  return {std::string(8, '\0'),
          std::string(8, '\xff'),
          std::string("\1\0\0\0\0\0\0\0", 8),
          "\"10.0.0.1:1\"",
          "\"[fc00::]:65535\"",
          "\"172.16.0.1:80\"",
          "-1",
          "65536",
          "1e300",
          "null",
          "[[",
          "\"liars\":[3]"};
}
