#include "runtime/core/base/base64.hpp"

#include <openssl/evp.h>

#include <cstdint>
#include <cstring>

namespace rille {

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                          reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

Result<std::string> from_base64(std::string_view text) {
  if (text.size() % 4)
    return make_error(ErrorKind::invalid, "the base64 text has a wrong length: expected a multiple of 4",
                      "the text was cut off or changed: copy or fetch it again");
  std::string out(text.size() / 4 * 3, '\0');
  int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                          reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n < 0)
    return make_error(ErrorKind::invalid, "the text is not base64",
                      "base64 has only A-Z, a-z, 0-9, + and /, with = at the end: copy or fetch the text again");
  while (n > 0 && !text.empty() && text.back() == '=') --n, text.remove_suffix(1);
  out.resize(static_cast<std::size_t>(n));
  return out;
}

bool is_utf8(std::string_view s) {
  std::size_t i = 0;
  // skips eight ASCII bytes at a time; most text is ASCII
  for (std::uint64_t eight; i + sizeof eight <= s.size(); i += sizeof eight) {
    std::memcpy(&eight, s.data() + i, sizeof eight);
    if (eight & 0x8080808080808080) break;
  }
  while (i < s.size()) {
    unsigned char c = static_cast<unsigned char>(s[i]);
    std::size_t n = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (!n || i + n > s.size()) return false;
    for (std::size_t k = 1; k < n; ++k)
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return false;
    unsigned char second = n > 2 ? static_cast<unsigned char>(s[i + 1]) : 0;
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
        (c == 0xf4 && second > 0x8f))
      return false;
    i += n;
  }
  return true;
}

}  // namespace rille
