#include "runtime/compute/data/text_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rille::data {

namespace {
// PCRE2 limits the steps from one start position and cannot be interrupted, so each call tries few start positions.
constexpr std::size_t starts_at_once = 64;
constexpr std::uint32_t steps_max = 1'000'000;  // from one start position
}  // namespace

Result<TextPattern> TextPattern::regex(const std::string& text) {
  TextPattern p;
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_USE_OFFSET_LIMIT, &code, &at, nullptr);
  if (!compiled) {
    PCRE2_UCHAR message[200];
    pcre2_get_error_message(code, message, sizeof message);
    return make_error(
        ErrorKind::invalid,
        fmt::format("the tokenizer's pattern: {} at position {}", reinterpret_cast<const char*>(message), at),
        "patterns are regular expressions; \"gpt2\", \"cl100k\" and \"llama3\" are known by name");
  }
  p.code_ = std::shared_ptr<const pcre2_code>(compiled, [compiled](const pcre2_code*) { pcre2_code_free(compiled); });
  (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // ignore an error: without JIT, matching is only slower
  p.prepare();
  return p;
}

void TextPattern::prepare() {
  if (!code_) return;
  context_.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context_.get(), steps_max);
  match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
}

TextPattern TextPattern::literal(std::string text) {
  TextPattern p;
  p.literal_ = std::move(text);
  return p;
}

Result<bool> TextPattern::next(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end,
                               const Asked& asked) const {
  asked.looks();
  if (!code_) {
    begin = text.find(literal_, at);
    end = begin + literal_.size();
    return begin != text.npos;
  }
  for (std::size_t from = at; from < text.size();) {
    pcre2_set_offset_limit(context_.get(), from + starts_at_once - 1);
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0,
                                  match_.get(), context_.get());
    if (found == PCRE2_ERROR_NOMATCH) {
      asked.looks();
      from += starts_at_once;  // or the start of the character at that position
      for (int i = 0; i < 3 && from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80; ++i)
        --from;
      continue;
    }
    if (found < 0)
      return make_error(
          ErrorKind::invalid,
          fmt::format("the match of the tokenizer's pattern failed after {} bytes (code {})", from, found),
          "encode shorter texts, or use a simpler pattern");
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match_.get());
    begin = std::max<std::size_t>(place[0], at);
    end = std::max<std::size_t>(place[1], begin);
    if (end > begin) return true;
    asked.looks();
    from = end + 1;  // the match was empty: continue after it
  }
  return false;
}

Result<std::string> TextPattern::replaced(std::string_view text, std::string_view with, std::size_t bytes_max,
                                          const Asked& asked) const {
  std::string out;
  for (std::size_t at = 0, begin = 0, end = 0;; at = end) {
    RILLE_TRY(const bool found, next(text, at, begin, end, asked));
    out += text.substr(at, found ? begin - at : text.npos);
    if (out.size() + (found ? with.size() : 0) > bytes_max)
      return make_error(ErrorKind::invalid, "the steps of the tokenizer make a text more than eight times as long",
                        "use the tokenizer file that came with the model");
    if (!found) return out;
    out += with;
  }
}

bool TextPattern::matches(std::string_view text) const {
  std::size_t begin = 0, end = 0;
  const auto found = next(text, 0, begin, end, {});
  return found.ok() && *found;
}

}  // namespace rille::data
