#include "runtime/compute/device/kernel_token.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rille::device {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class TokenReader {
 public:
  explicit TokenReader(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) RILLE_CHECK(one());
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t n = 0) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }
  bool starts(std::string_view s) const { return text_.substr(at_, s.size()) == s; }

  // Advances to the offset `end` and counts the lines up to it.
  void go_to(std::size_t end) {
    line_ += int(std::count(text_.begin() + std::ptrdiff_t(at_), text_.begin() + std::ptrdiff_t(end), '\n'));
    at_ = end;
  }

  Error open(const char* what) const {
    return make_error(ErrorKind::invalid, fmt::format("line {}: {} that does not end", line_, what),
                      "close it in the kernel source");
  }

  void add(Token::Kind kind, std::size_t end) {
    tokens_.push_back({kind, text_.substr(at_, end - at_), at_, line_});
    go_to(end);
  }

  Result<> one() {
    const char c = peek();
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\\' || c == '\v' || c == '\f') {
      go_to(at_ + 1);
      return success();
    }
    if (starts("//")) {
      go_to(std::min(text_.find('\n', at_), text_.size()));
      return success();
    }
    if (starts("/*")) {
      const auto end = text_.find("*/", at_ + 2);
      if (end == text_.npos) return open("a comment");
      go_to(end + 2);
      return success();
    }
    if (c == '"') return quoted('"');
    if (c == '\'') return quoted('\'');
    if (is_letter(c)) return word();
    if (is_digit(c)) return number();
    for (const std::string_view sign : {"->", "::", "<<", "+=", "-=", "*=", "/=", "==", "++", "--"}) {
      if (!starts(sign)) continue;
      add(Token::Kind::sign, at_ + 2);
      return success();
    }
    add(Token::Kind::sign, at_ + 1);
    return success();
  }

  Result<> quoted(char mark) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != mark && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return open("a string");
    // An unclosed quote or apostrophe, as in the text of an #error line, ends with the line.
    add(Token::Kind::text, text_[end] == mark ? end + 1 : end);
    return success();
  }

  Result<> word() {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    const auto name = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '"' && !name.empty() && name.back() == 'R' && name.size() <= 3) {
      const auto open_at = text_.find('(', end);
      if (open_at == text_.npos || open_at - end > 17) return open("a raw string");
      const std::string close = ")" + std::string(text_.substr(end + 1, open_at - end - 1)) + "\"";
      const auto close_at = text_.find(close, open_at);
      if (close_at == text_.npos) return open("a raw string");
      add(Token::Kind::text, close_at + close.size());
      return success();
    }
    add(Token::Kind::word, end);
    return success();
  }

  Result<> number() {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '.' ||
                                  (text_[end] == '\'' && end + 1 < text_.size() && is_digit(text_[end + 1]))))
      ++end;
    add(Token::Kind::number, end);
    return success();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokens_of(std::string_view text) { return TokenReader(text).run(); }

}  // namespace rille::device
