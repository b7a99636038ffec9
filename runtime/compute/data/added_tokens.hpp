// Tokens that are matched in a text before it is split into words, such as "<|endoftext|>" or "<tool>". Of several
// matches at one place the longest wins. Private to runtime/compute/data.
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
    bool special = false;                          // matched only on request
    bool single_word = false;                      // not inside a word
    bool left_strip = false, right_strip = false;  // also consumes the white space there
  };

  Result<> add(Token token);

  // Calls rest(text) -> Result<> and token(id) in the order of the text.
  template <class F, class G>
  Result<> split(std::string_view text, bool special, const F& rest, const G& token) const {
    std::size_t from = 0;
    for (std::size_t at = 0; const Token* found = find(text, special, at);) {
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
  const Token* find(std::string_view text, bool special, std::size_t& at) const;
  // Whether the match is allowed there, extending it over stripped white space, but not before `from`.
  bool fits(const Token& token, std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const;

  std::array<std::vector<Token>, 256> by_first_;  // by first byte; the longest first
  bool any_ = false;
  std::optional<TextPattern> in_word_;
};

}  // namespace rille::data
