#include "runtime/compute/data/added_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/data/utf8.hpp"

namespace rille::data {

namespace {

// Whether the character has Unicode's property White_Space.
bool is_space(std::string_view c) {
  static constexpr std::string_view wide[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2028",
                                              "\u2029",   "\u202f", "\u205f", "\u3000"};
  if (c.size() == 1) return c[0] == ' ' || (c[0] >= '\t' && c[0] <= '\r');
  return std::find(std::begin(wide), std::end(wide), c) != std::end(wide) || (c >= "\u2000" && c <= "\u200a");
}

}  // namespace

Result<> AddedTokens::add(Token token) {
  constexpr int tokens_max = 20'000;  // adding and finding tokens takes time for each of them
  if (token.text.empty()) return {};
  if (++count_ > tokens_max)
    return make_error(ErrorKind::invalid, fmt::format("the tokenizer has more than {} added tokens", tokens_max),
                      "put ordinary words into the model's vocabulary instead");
  if (token.single_word && !in_word_) { RILLE_TRY(in_word_, TextPattern::regex(R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}])")); }
  auto& list = by_first_[static_cast<std::uint8_t>(token.text[0])];
  const auto place =
      std::find_if(list.begin(), list.end(), [&](const Token& other) { return other.text.size() < token.text.size(); });
  list.insert(place, std::move(token));
  return {};
}

const AddedTokens::Token* AddedTokens::find(std::string_view text, bool special, std::size_t& at,
                                            const Asked& asked) const {
  if (!count_) return nullptr;
  Pace pace(asked.look);
  for (; at < text.size(); ++at) {
    const auto& list = by_first_[static_cast<std::uint8_t>(text[at])];
    if (!list.empty()) pace.did(64 * list.size());
    for (const Token& token : list)
      if ((special || !token.special) && text.substr(at, token.text.size()) == token.text) return &token;
  }
  return nullptr;
}

bool AddedTokens::fits(const Token& token, std::string_view text, std::size_t from, std::size_t& begin,
                       std::size_t& end) const {
  const auto before = [&](std::size_t at) { return text.substr(char_before(text, at), at - char_before(text, at)); };
  const auto behind = [&](std::size_t at) { return text.substr(at, char_bytes(text, at)); };
  if (token.single_word &&
      ((begin > 0 && in_word_->matches(before(begin))) || (end < text.size() && in_word_->matches(behind(end)))))
    return false;
  while (token.left_strip && begin > from && is_space(before(begin))) begin -= before(begin).size();
  while (token.right_strip && end < text.size() && is_space(behind(end))) end += behind(end).size();
  return true;
}

}  // namespace rille::data
