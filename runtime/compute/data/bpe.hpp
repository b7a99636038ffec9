// The merging of byte-pair encoding, for one word. Inside runtime/data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rille::data {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

// The tokens' bytes, and which pairs join: by a list of merges in their order, or, without one, any pair whose bytes
// together are a token, ranked by that token's id.
struct Vocabulary {
  struct Merge {
    std::int32_t rank, id;
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids;
  std::vector<std::string> bytes;                   // by id
  std::vector<bool> known;                          // by id: holes are not tokens
  std::unordered_map<std::uint64_t, Merge> merges;  // by pair of ids
  bool by_rank = false;
  // Words begin as their bytes; or, where `of_characters`, as their characters, and one that is no token as its bytes
  // (byte_fallback), else as the unknown token, else it is left out. of_byte: -1 where there is none.
  std::int32_t of_byte[256] = {};
  bool of_characters = false, byte_fallback = false, fuse_unknown = false;
  std::int32_t unknown = -1, of_ascii[128] = {};

  static std::uint64_t pair(std::int32_t a, std::int32_t b) {
    return std::uint64_t(std::uint32_t(a)) << 32 | std::uint32_t(b);
  }
  // False: they do not join.
  bool join(std::int32_t a, std::int32_t b, Merge& out) const;
};

// Appends the word's ids. Takes time n log n, so that no text can be made that takes for ever.
void merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<std::int32_t>& out);

}  // namespace rille::data
