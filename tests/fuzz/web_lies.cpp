// The lies of WebLiar. Each is a whole answer.
#include <cmath>

#include "tests/fuzz/web_liar.hpp"

namespace sessions {

namespace {

std::string number(Dice& dice) {
  static const std::vector<std::string> numbers = {"0",
                                                   "1",
                                                   "-1",
                                                   "+5",
                                                   "5, 6",
                                                   "1e9",
                                                   "0x10",
                                                   "4294967296",
                                                   "9223372036854775807",
                                                   "99999",
                                                   "2147483648",
                                                   "",
                                                   " 7 ",
                                                   "7;",
                                                   "nan",
                                                   "18446744073709551617",
                                                   "007",
                                                   "3000",
                                                   "1000000000000"};
  return dice.pick(numbers);
}

std::string hex_number(Dice& dice) {
  static const std::vector<std::string> numbers = {"0",
                                                   "-1",
                                                   "5",
                                                   "fffffffffffffff",
                                                   "ffffffffffffffff1",
                                                   "7fffffff",
                                                   "80000000",
                                                   "1000\r\n0",
                                                   "zz",
                                                   "5;" + std::string(9000, 'x'),
                                                   "",
                                                   " 5",
                                                   "0x5"};
  return dice.pick(numbers);
}

// A gzip stream of `bytes` zeros, without its end: fixed Huffman codes, a match of length 258 at distance 1 in 13 bits.
std::string bomb(std::size_t bytes, bool zlib) {
  std::string out = zlib ? std::string("\x78\x9c", 2) : std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  unsigned filled = 0, byte = 0;
  const auto put = [&](unsigned code, int bits, bool reversed) {  // Huffman codes begin with their highest bit
    for (int i = 0; i < bits; ++i) {
      const int at = reversed ? bits - 1 - i : i;
      byte |= ((code >> at) & 1u) << filled;
      if (++filled == 8) out += static_cast<char>(byte), byte = 0, filled = 0;
    }
  };
  put(1, 1, false), put(1, 2, false);
  put(0x30, 8, true);
  for (std::size_t n = 0; n < bytes; n += 258) put(0xc5, 8, true), put(0, 5, true);
  return out;
}

std::string with_head(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + headers + "\r\n" + body;
}
std::string sized(const std::string& status, const std::string& headers, const std::string& body) {
  return with_head(status, headers + "Content-Length: " + std::to_string(body.size()) + "\r\n", body);
}
std::string body_of(const std::string& honest) {
  return honest.substr(std::min(honest.find("\r\n\r\n") + 4, honest.size()));
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string out;
  for (; count > 0; --count) out += text;
  return out;
}

std::string wrong_length(Dice& dice, const std::string& body) {
  std::string headers = "ETag: \"v1\"\r\nContent-Length: " + number(dice) + "\r\n";
  if (dice.chance(0.3)) headers += "Content-Length: " + number(dice) + "\r\n";
  if (dice.chance(0.3)) headers += "Transfer-Encoding: chunked\r\n";
  return with_head("200 OK", headers, body);
}

std::string chunks(Dice& dice, const std::string& body) {
  std::string out = with_head("200 OK", "Transfer-Encoding: chunked\r\n", "");
  for (std::size_t n = dice.below(6); n > 0; --n) {
    const std::string piece = body.substr(0, dice.below(2000));
    char size[32];
    std::snprintf(size, sizeof size, "%zx", piece.size());
    out +=
        (dice.chance(0.3) ? hex_number(dice) : std::string(size)) + "\r\n" + piece + (dice.chance(0.1) ? "" : "\r\n");
  }
  if (dice.chance(0.5)) out += "0\r\n";
  if (dice.chance(0.3)) out += repeated("X-Trailer: " + std::string(200, 't') + "\r\n", dice.below(3000));
  return out + "\r\n";
}

std::string strange_headers(Dice& dice, const std::string& body) {
  std::string headers;
  switch (dice.below(9)) {
    case 0: headers = repeated("X-Flood: y\r\n", 1 + dice.below(40'000)); break;
    case 1: headers = "X-Long: " + std::string(dice.below(600'000), 'z') + "\r\n"; break;
    case 2: headers = "no colon here\r\n: no name\r\n\tfolded\r\n"; break;
    case 3: headers = std::string("X-Nul: a\0b\r\n", 12); break;
    case 4: headers = "X-Bytes: " + dice.bytes(dice.below(300)) + "\r\n"; break;
    case 5: headers = "ETag: \"" + std::string(1, static_cast<char>(1 + dice.below(31))) + "\"\r\n"; break;
    case 6: headers = repeated("Set-Cookie: a=b; Domain=127.0.0.1\r\n", dice.below(2000)); break;
    case 7: headers = "Last-Modified: " + number(dice) + "\r\nETag: W/\"x\"\r\nDate: " + number(dice) + "\r\n"; break;
    default: headers = "Connection: close, keep-alive\r\nUpgrade: h2c\r\nAlt-Svc: h2=\":1\"\r\n";
  }
  return sized("200 OK", headers, body);
}

std::string strange_status(Dice& dice, const std::string& honest) {
  static const std::vector<std::string> lines = {
      "HTTP/1.1",
      "HTTP/9.9 200 OK",
      "HTTP/1.1 99999999999 OK",
      "HTTP/1.1 -1 OK",
      "HTTP/1.1 2 OK",
      "HTTP/1.1 200",
      "HTTP/2 200",
      "ICY 200 OK",
      "HTTP/1.1 000 X",
      "HTTP/1.1 204 No",
      "HTTP/1.1 304 Not",
      "HTTP/1.1 205 R",
      "HTTP/1.1 206 Part",
      "HTTP/1.1 416 Range",
      "HTTP/1.1 404 No",
      "HTTP/1.1 410 No",
      "HTTP/1.1 500 No",
      "HTTP/1.0 200 OK",
      "PRI * HTTP/2.0",
      "HTTP/1.1 401 U\r\nWWW-Authenticate: NTLM TlRMTVNTUAAC\r\nWWW-Authenticate: Negotiate x\r\nX: y",
      "HTTP/1.1 407 P\r\nProxy-Authenticate: Basic realm=\"x\"",
      "HTTP/1.1 429 T\r\nRetry-After: 0",
      "HTTP/1.1 200 \0O"};
  const std::string rest = honest.substr(std::min(honest.find("\r\n"), honest.size()));
  if (dice.chance(0.3)) return "HTTP/1.1 503 No\r\nRetry-After: " + number(dice) + rest;
  return dice.pick(lines) + rest;
}

std::string early_answers(Dice& dice, const std::string& honest) {
  static const std::vector<std::string> early = {"HTTP/1.1 100 Continue\r\n\r\n",
                                                 "HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\n", "HTTP/1.1 102 P\r\n\r\n",
                                                 "HTTP/1.1 199 X\r\nContent-Length: 5\r\n\r\n"};
  if (dice.chance(0.2)) return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + dice.bytes(60);
  return repeated(dice.pick(early), 1 + dice.below(3000)) + honest;
}

std::string redirect(Dice& dice, const std::vector<std::string>& places) {
  static const std::vector<std::string> statuses = {"301 M", "302 F", "302 F", "303 S", "307 T",
                                                    "308 P", "300 C", "305 U", "399 X"};
  std::string to = dice.chance(0.7) ? places[dice.below(4)] : dice.pick(places);  // the first are the most tempting
  if (dice.chance(0.1)) to += std::string(dice.below(120'000), 'a');
  if (dice.chance(0.05)) to += std::string("\0\x01", 2) + dice.bytes(20);
  return sized(dice.pick(statuses), "Location: " + to + "\r\n", "moved");
}

std::string compressed(Dice& dice, const std::string& body) {
  static const std::vector<std::string> chains = {"gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip",
                                                  "br",
                                                  "zstd",
                                                  "identity, gzip",
                                                  "compress",
                                                  "x-gzip",
                                                  "deflate, br",
                                                  "no-such"};
  if (dice.chance(0.4))
    return sized("200 OK", "Content-Encoding: gzip\r\n", bomb(std::size_t{1} << (12 + dice.below(14)), false));
  if (dice.chance(0.3))
    return sized("200 OK", "Content-Encoding: deflate\r\n", bomb(std::size_t{1} << (12 + dice.below(14)), true));
  const std::string bytes = dice.chance(0.5)   ? dice.bytes(dice.below(400))
                            : dice.chance(0.5) ? body
                                               : bomb(5000, false);
  return sized("200 OK", "Content-Encoding: " + dice.pick(chains) + "\r\n", bytes);
}

std::string range(Dice& dice, const std::string& body) {
  static const std::vector<std::string> ranges = {"bytes 0-9/5",
                                                  "bytes */10",
                                                  "bytes -5-9/10",
                                                  "bytes 5-9/-1",
                                                  "bytes 9-5/10",
                                                  "bytes 1000-1009/*",
                                                  "items 0-9/10",
                                                  "bytes",
                                                  "bytes 0-9",
                                                  "bytes -/-",
                                                  "bytes 99999999999999999999-1/2",
                                                  "bytes 1000-9999/9223372036854775807",
                                                  "bytes 0-0/0, bytes 1-1/1",
                                                  "bytes/5-6"};
  std::string told = dice.pick(ranges);
  if (dice.chance(0.4)) told = "bytes " + number(dice) + "-" + number(dice) + "/" + number(dice);
  static const std::vector<std::string> tags = {"\"v1\"", "\"v2\"", "W/\"v1\"", "", "v1"};
  return sized("206 Partial Content", "Content-Range: " + told + "\r\nETag: " + dice.pick(tags) + "\r\n",
               body.substr(dice.below(body.size() + 1)));
}

std::string flipped(Dice& dice, std::string bytes) {
  const std::size_t head = std::min(bytes.size(), bytes.find("\r\n\r\n") + 4);
  for (std::size_t n = 1 + dice.below(4); n > 0 && !bytes.empty(); --n) {
    const std::size_t at = dice.below(std::min(head, bytes.size()));
    if (dice.chance(0.3)) bytes.erase(at, dice.below(5));
    else bytes[at] = static_cast<char>(dice.engine());
  }
  return bytes;
}

}  // namespace

WebAnswer web_lie(Dice& dice, const std::string& honest, const std::vector<std::string>& places) {
  const std::string body = body_of(honest);
  WebAnswer out;
  out.closes = dice.chance(0.5);
  switch (dice.below(18)) {
    case 0: out.bytes = wrong_length(dice, body), out.closes = true; break;
    case 1: out.bytes = chunks(dice, body), out.closes = dice.chance(0.9); break;
    case 2: out.bytes = strange_headers(dice, body); break;
    case 3: out.bytes = strange_status(dice, honest), out.closes = true; break;
    case 4: out.bytes = early_answers(dice, honest), out.closes = true; break;
    case 5:
    case 6:
    case 16:
    case 17: out.bytes = redirect(dice, places); break;
    case 7: out.bytes = compressed(dice, body), out.closes = true; break;
    case 8:
    case 9: out.bytes = range(dice, body); break;
    case 10: out.bytes = honest.substr(0, dice.below(honest.size())), out.closes = true; break;
    case 11: out.bytes = honest + dice.bytes(dice.below(200)) + (dice.chance(0.5) ? honest : ""); break;
    case 12: out.bytes = dice.bytes(dice.below(2000)), out.closes = true; break;
    case 13: out.bytes = flipped(dice, honest), out.closes = true; break;
    case 14:
      out.bytes = with_head("200 OK", "", repeated(body, 1 + 3'000'000 / (body.size() + 1))), out.closes = true;
      break;
    default:
      out.bytes = honest.substr(0, 300);
      out.piece = 1 + dice.below(40);
      out.silent_ms = dice.chance(0.1) ? 200 : 0;
      out.closes = true;
  }
  return out;
}

}  // namespace sessions
