// Byte-pair merging of one word. Private to runtime/compute/data.
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

// The tokens' bytes, and the merges: a list in order of rank, or, without one, any pair whose joined bytes are a token,
// ranked by that token's id.
struct Vocabulary {
  struct Merge {
    std::int32_t rank, id;
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids;
  std::vector<std::string> bytes;                   // by id
  std::vector<bool> known;                          // by id: unused ids are not tokens
  std::unordered_map<std::uint64_t, Merge> merges;  // by pair of ids
  bool by_rank = false;
  // Words start as their bytes; with `of_characters` as their characters. A character that is not a token becomes its
  // bytes (byte_fallback), else the unknown token, else it is dropped. of_byte: -1 if there is no such token.
  std::int32_t of_byte[256] = {};
  bool of_characters = false, byte_fallback = false, fuse_unknown = false;
  std::int32_t unknown = -1, of_ascii[128] = {};

  static std::uint64_t pair(std::int32_t a, std::int32_t b) {
    return std::uint64_t(std::uint32_t(a)) << 32 | std::uint32_t(b);
  }
  // False: the pair has no merge.
  bool join(std::int32_t a, std::int32_t b, Merge& out) const;
};

// Appends the word's ids. Takes O(n log n), so that no text can take excessively long.
void merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<std::int32_t>& out);

}  // namespace rille::data
