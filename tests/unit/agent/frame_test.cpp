#include "runtime/workflow/agent/frame.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <random>

using namespace rille;
using namespace rille::agent;

namespace {
Frame sample(FrameType type, std::string body) {
  Frame frame;
  frame.type = type;
  frame.header.set("id", 7).set("op", "put").set("path", "a/b");
  frame.body = std::move(body);
  return frame;
}
}  // namespace

TEST_CASE("a frame survives the wire in any pieces") {
  std::string wire =
      encode_frame(sample(FrameType::request, std::string("\0\xff raw", 6))).value() + encode_frame(Frame{}).value();
  for (std::size_t piece : {std::size_t{1}, std::size_t{3}, wire.size()}) {
    FrameParser parser;
    std::vector<Frame> got;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      parser.feed(std::string_view(wire).substr(at, piece));
      while (true) {
        auto next = parser.next();
        REQUIRE(next.ok());
        if (!*next) break;
        got.push_back(std::move(**next));
      }
    }
    REQUIRE(got.size() == 2);
    CHECK(got[0].body == std::string("\0\xff raw", 6));
    CHECK(got[0].header.text("path") == "a/b");
    CHECK(got[1].type == FrameType::ping);
  }
}

TEST_CASE("bad frames are refused with the reason, and stay refused") {
  auto refusal = [](std::string wire) {
    FrameParser parser;
    parser.feed(wire);
    auto first = parser.next();
    REQUIRE_FALSE(first.ok());
    CHECK(first.error().kind == ErrorKind::integrity);
    parser.feed(encode_frame(Frame{}).value());
    CHECK_FALSE(parser.next().ok());
    return first.error().message;
  };
  CHECK(refusal(std::string("\xff\xff\xff\x7f\x01", 5)).find("frame_bytes_max") != std::string::npos);
  CHECK(refusal(std::string("\x04\0\0\0\x01", 5)).find("at least 5") != std::string::npos);
  CHECK(refusal(std::string("\x05\0\0\0\x63", 5)).find("unknown type 99") != std::string::npos);
  CHECK(refusal(std::string("\x07\0\0\0\x02\x09\0\0\0{}", 11)).find("header of 9") != std::string::npos);
  CHECK(refusal(std::string("\x07\0\0\0\x02\x02\0\0\0[]", 11)).find("not an object") != std::string::npos);
  CHECK(refusal("Welcome to Ubuntu 22.04 LTS").find("agent protocol") != std::string::npos);
  auto big = encode_frame(sample(FrameType::request, std::string(frame_bytes_max, 'x')));
  REQUIRE_FALSE(big.ok());
  CHECK(big.error().message.find("frame_bytes_max") != std::string::npos);
  CHECK(encode_frame(sample(FrameType::event, std::string(frame_bytes_max, 'x'))).ok());
  CHECK_FALSE(encode_frame(sample(FrameType::event, std::string(result_frame_bytes_max, 'x'))).ok());
  // What only a result may be is refused of others at once, before it has come.
  CHECK(refusal(std::string("\0\0\0\x02\x02", 5)).find("frame_bytes_max") != std::string::npos);
  FrameParser parser;
  parser.feed(std::string("\0\0\0\x02\x03", 5));
  CHECK(parser.next().ok());
}

TEST_CASE("mutated frames never do more than fail") {
  std::mt19937_64 random(20261121);
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::size_t whole = 0, refused = 0, rounds = 0;
  while (std::chrono::steady_clock::now() < until || rounds < 2000) {
    ++rounds;
    std::string wire;
    for (int i = 0; i < 4; ++i)
      wire += encode_frame(sample(static_cast<FrameType>(1 + random() % 6), std::string(random() % 64, 'b'))).value();
    for (std::size_t n = random() % 4; n > 0; --n) {
      std::size_t at = random() % wire.size();
      switch (random() % 4) {
        case 0: wire[at] = static_cast<char>(random()); break;
        case 1: wire.erase(at, random() % 8); break;
        case 2: wire.insert(at, std::string(random() % 8, static_cast<char>(random()))); break;
        default: wire[at] = static_cast<char>(wire[at] ^ (1 << (random() % 8)));
      }
      if (wire.empty()) wire = "x";
    }
    FrameParser parser;
    for (std::size_t at = 0; at < wire.size();) {
      std::size_t piece = 1 + random() % 40;
      parser.feed(std::string_view(wire).substr(at, piece));
      at += piece;
      while (true) {
        auto next = parser.next();
        if (!next) {
          ++refused;
          at = wire.size();
          break;
        }
        if (!*next) break;
        REQUIRE((*next)->body.size() <= frame_bytes_max);
        ++whole;
      }
    }
  }
  CHECK(whole > 1000);  // both sides of the parser were reached
  CHECK(refused > 100);
}
