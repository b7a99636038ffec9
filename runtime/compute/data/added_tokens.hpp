// Tokens that are matched in a text before the text is split into words, such as "<|endoftext|>" or "<tool>". If
// several match at one position, the longest wins. Private to runtime/compute/data.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/text_pattern.hpp"

namespace rille::data {

class AddedTokens {
 public:
  struct Token {
    std::string text;
    std::int32_t id = -1;
    bool special = false;                          // matched only if the caller asks for special tokens
    bool single_word = false;                      // not matched inside a word
    bool left_strip = false, right_strip = false;  // the match also consumes white space to its left or right
  };

  Result<> add(Token token);  // invalid: too many

  // Calls token(id) for each match and rest(text) -> Result<> for the text between matches, in the order of the text.
  template <class F, class G>
  Result<> split(std::string_view text, bool special, const F& rest, const G& token, const Asked& asked) const {
    std::size_t from = 0;
    for (std::size_t at = 0; const Token* found = find(text, special, at, asked);) {
      std::size_t begin = at, end = at + found->text.size();
      at = end;
      if (!fits(*found, text, from, begin, end)) continue;
      if (begin > from) RILLE_CHECK(rest(text.substr(from, begin - from)));
      token(found->id);
      from = at = end;
    }
    if (from < text.size()) RILLE_CHECK(rest(text.substr(from)));
    return {};
  }

 private:
  // Finds the first match from `at` on and moves `at` to its start.
  const Token* find(std::string_view text, bool special, std::size_t& at, const Asked& asked) const;
  // Whether the match [begin, end) is allowed. Extends it over white space that the token strips, but not before
  // `from`.
  bool fits(const Token& token, std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const;

  std::array<std::vector<Token>, 256> by_first_;  // tokens by their first byte, the longest first
  int count_ = 0;
  std::optional<TextPattern> in_word_;
};

}  // namespace rille::data
