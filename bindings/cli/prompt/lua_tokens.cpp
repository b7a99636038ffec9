#include "bindings/cli/prompt/lua_tokens.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace rille::cli {

namespace {

using TokenKind = LuaToken::Kind;

constexpr std::array<std::string_view, 19> keywords = {"and",      "break",  "do",   "else",  "elseif", "end", "for",
                                                       "function", "goto",   "if",   "in",    "local",  "not", "or",
                                                       "repeat",   "return", "then", "until", "while"};
constexpr std::array<std::string_view, 3> constants = {"false", "nil", "true"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

template <std::size_t N>
bool has(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Tokens {
 public:
  explicit Tokens(std::string_view source) : source_(source) {}

  std::vector<LuaToken> all() {
    while (at_ < source_.size()) {
      if (const char c = source_[at_]; c == ' ' || c == '\t' || c == '\n' || c == '\r') ++at_;
      else take();
    }
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  void add(TokenKind kind, std::size_t end, bool open = false) {
    out_.push_back({kind, at_, end, open});
    at_ = end;
  }

  // The bytes of "[==[" at `at`, or 0.
  std::size_t long_bracket(std::size_t at) const {
    std::size_t end = at + 1;
    while (end < source_.size() && source_[end] == '=') ++end;
    return source_[at] == '[' && end < source_.size() && source_[end] == '[' ? end + 1 - at : 0;
  }

  void take_long(TokenKind kind, std::size_t from, std::size_t bracket) {
    const std::string close = "]" + std::string(bracket - 2, '=') + "]";
    const std::size_t found = source_.find(close, from + bracket);
    if (found == std::string_view::npos) add(kind, source_.size(), true);
    else add(kind, found + close.size());
  }

  void take_quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n')
      end += source_[end] == '\\' && end + 1 < source_.size() ? 2 : 1;
    const bool closed = end < source_.size() && source_[end] == quote;
    add(TokenKind::string, std::min(end + (closed ? 1 : 0), source_.size()), !closed);
  }

  void take_number() {
    std::size_t end = at_;
    while (end < source_.size() && (is_name(source_[end]) || source_[end] == '.')) {
      const bool exponent = std::string_view("eEpP").find(source_[end]) != std::string_view::npos;
      ++end;
      if (exponent && end < source_.size() && (source_[end] == '+' || source_[end] == '-') &&
          end + 1 < source_.size() && is_digit(source_[end + 1]))
        ++end;
    }
    add(TokenKind::number, end);
  }

  void take() {
    const char c = peek();
    if (c == '-' && peek(1) == '-') {
      if (const std::size_t bracket = at_ + 2 < source_.size() ? long_bracket(at_ + 2) : 0)
        return take_long(TokenKind::comment, at_ + 2, bracket);
      return add(TokenKind::comment, std::min(source_.find('\n', at_), source_.size()));
    }
    if (const std::size_t bracket = c == '[' ? long_bracket(at_) : 0) return take_long(TokenKind::string, at_, bracket);
    if (c == '"' || c == '\'') return take_quoted(c);
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return take_number();
    if (!is_name(c)) return add(TokenKind::mark, at_ + 1);
    std::size_t end = at_;
    while (end < source_.size() && is_name(source_[end])) ++end;
    const std::string_view word = source_.substr(at_, end - at_);
    add(has(keywords, word) ? TokenKind::keyword : has(constants, word) ? TokenKind::constant : TokenKind::name, end);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<LuaToken> out_;
};

constexpr std::array<std::string_view, 4> opening = {"do", "function", "repeat", "then"};
constexpr std::array<std::string_view, 4> closing = {"else", "elseif", "end", "until"};

}  // namespace

const char* kind_name(LuaToken::Kind kind) {
  constexpr const char* names[] = {"name", "keyword", "constant", "number", "string", "comment", "mark"};
  return names[static_cast<int>(kind)];
}

std::vector<LuaToken> lua_tokens(std::string_view source) { return Tokens(source).all(); }

int lua_depth(std::string_view source) {
  int depth = 0;
  for (const LuaToken& token : lua_tokens(source)) {
    const std::string_view word = source.substr(token.begin, token.end - token.begin);
    if (token.kind == TokenKind::keyword) {
      if (word == "else") continue;  // closes a block and opens one
      depth += has(opening, word) ? 1 : has(closing, word) ? -1 : 0;
    } else if (token.kind == TokenKind::mark) {
      depth += word == "(" || word == "{" || word == "[" ? 1 : word == ")" || word == "}" || word == "]" ? -1 : 0;
    }
  }
  return depth;
}

}  // namespace rille::cli
