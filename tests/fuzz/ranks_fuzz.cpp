// What ranks read from their sockets: before the token is proven, any bytes; then messages in any pieces, heads, and
// the words of a rendezvous. Nothing crashes or grows without bound; bytes alone prove nothing, not even recorded ones;
// what is accepted is in its limits, and says the same again.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/compute/collective/connection.hpp"
#include "runtime/compute/collective/rendezvous.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::collective;

namespace {

// The messages in a stream that arrives in steps of at most `step` bytes; empty after what is wrong.
std::vector<std::string> read_all(std::string_view stream, std::size_t step, bool& good) {
  std::vector<std::string> out;
  MessageParser parser;
  good = true;
  for (;;) {
    auto next = parser.next();
    if (!next) {
      fuzz_check(next.error().kind == ErrorKind::integrity, "a refusal is an integrity error");
      good = false;
      return out;
    }
    if (*next) {
      out.push_back((*next)->is_null() ? "" : (*next)->to_json());
      continue;
    }
    fuzz_check(parser.wanted() > 0 && parser.wanted() <= message_bytes_max + 4, "a parser wants what is in its limit");
    const auto n = std::min({step, parser.wanted(), stream.size()});
    if (n == 0) return out;
    parser.feed(stream.substr(0, n));
    stream.remove_prefix(n);
  }
}

void check_head(std::string_view stream) {
  if (stream.size() < head_bytes) return;
  const auto head = decode_head(reinterpret_cast<const std::byte*>(stream.data()));
  if (!head) return;
  std::byte again[head_bytes];
  encode_head(head->operation, head->number, again);
  const auto twice = decode_head(again);
  fuzz_check(twice.ok() && twice->operation == head->operation && twice->number == head->number,
             "a head says the same again");
  fuzz_check(!describe(head->operation).empty(), "an operation has words");
  if (check(head->operation, 0, 2))
    fuzz_check(head->operation.peer >= 0 || head->operation.kind != Kind::broadcast, "a rank is one");
}

void check_words(std::string_view text) {
  auto value = Value::from_json(text);
  if (!value || !value->as_object()) return;
  const auto roster = roster_from(*value, 2);
  fuzz_check(!roster || roster->ranks.size() == 2, "a roster has all ranks");
}

// The first bytes of a rank with the token "token".
const std::string hello_of_rank =
    "1603010101010000fd03038a853773623f94e6a66520f3cf232e55eb88e8d8d1cb96eca22994ef39994eac20da93ec17da34"
    "4e0ef569cd176be6b6ed79a82aba5ba94359d5b40c40a23824590004130100ff010000b0000b000403000102000a00060004"
    "001d0017002300000016000000170000000d001e001c040305030603080708080809080a080b080408050806040105010601"
    "002b0003020304002d00020101003300260024001d0020cdd8b155b88e5cf55bd675e950e2b35e9b65d247c86fd6d5dddc39"
    "dfe245777f002900350010000a72696c6c652072616e6b00000000002120f4519a2c8eca657531488a1729b58d9e82cb6876"
    "65b03ba9af573450410ad69e";

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

void check_stranger(std::string_view stream) {
  int fds[2];
  fuzz_check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "there are sockets");
  const Fd other(fds[1]);
  Connection server(Fd(fds[0]), Connection::Side::accepts, "token");
  fuzz_check(stream.empty() || ::write(other.get(), stream.data(), stream.size()) > 0, "a socket takes bytes");
  const auto done = server.shake_hands();
  fuzz_check(!done || !*done, "bytes alone prove nothing");
  fuzz_check(done || done.error().kind == ErrorKind::auth, "a stranger is an auth error");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  bool whole = false, cut = false;
  const auto at_once = read_all(stream, size + 1, whole);
  const auto in_pieces = read_all(stream, 3, cut);
  fuzz_check(at_once == in_pieces && whole == cut, "the pieces in which a stream arrives do not matter");
  check_stranger(stream);
  check_head(stream);
  check_words(stream.substr(std::min<std::size_t>(4, size)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  Value hello;
  hello.set("rank", 1).set("world", 2).set("host", "h").set("port", 5);
  Value welcome;
  welcome.set("session", "s")
      .set("payload", "")
      .set("ranks", Value::Array{Value().set("host", "h").set("address", "::1").set("port", 1), Value()});
  const auto text = [](const Value& v) { return encode_message(v).value(); };
  Operation op;
  op.kind = Kind::all_reduce;
  op.shape.push(3);
  op.count = 3;
  std::string head(head_bytes, '\0');
  encode_head(op, 7, reinterpret_cast<std::byte*>(head.data()));
  op.kind = Kind::sendrecv;
  op.incoming.count = 4;
  std::string halves(2 * head_bytes, '\0');
  encode_head(receiving_half(op), 8, reinterpret_cast<std::byte*>(halves.data()));
  encode_head(sending_half(op), 8, reinterpret_cast<std::byte*>(halves.data()) + head_bytes);
  return {text(hello), text(welcome) + std::string(bell) + text(hello), head, halves, from_hex(hello_of_rank)};
}

std::vector<std::string> fuzz_words() {
  return {std::string(bell),
          std::string("\x02\0\0\0{}", 6),
          std::string("\xff\xff\xff\xff", 4),
          "rille rank",
          "\"ranks\":[]",
          "{}",
          "null",
          "1e300",
          "-1",
          std::string(200, '[')};
}
