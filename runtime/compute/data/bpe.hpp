// Byte-pair encoding of one word: merges pairs of tokens. Private to runtime/compute/data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/compute/data/pace.hpp"

namespace rille::data {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

// The tokens' bytes, and the merges. Either the file lists the merges in order of rank, or any two tokens merge whose
// joined bytes are a token; then the rank is that token's id.
struct Vocabulary {
  struct Merge {
    std::int32_t rank, id;
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids;
  std::vector<std::string> bytes;                   // each token's bytes, indexed by id
  std::vector<bool> known;                          // indexed by id; false: no token has this id
  std::unordered_map<std::uint64_t, Merge> merges;  // key: the ids of the two merged tokens
  bool by_rank = false;
  // Merging starts from a word's bytes or, with `of_characters`, its characters. A character that is not a token
  // becomes its bytes (with byte_fallback), else the unknown token; without an unknown token it is dropped.
  // of_byte[b]: the id of byte b, -1: no such token.
  std::int32_t of_byte[256] = {};
  bool of_characters = false, byte_fallback = false, fuse_unknown = false;
  std::int32_t unknown = -1, of_ascii[128] = {};

  static std::uint64_t pair(std::int32_t a, std::int32_t b) {
    return std::uint64_t(std::uint32_t(a)) << 32 | std::uint32_t(b);
  }
  // Finds the merge of tokens a and b. False: the two do not merge.
  bool join(std::int32_t a, std::int32_t b, Merge& out) const;
};

// Appends the word's ids. Takes O(n log n) for n bytes, so that no text can take excessively long.
Result<> merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<std::int32_t>& out,
                    const Asked& asked);

}  // namespace rille::data
