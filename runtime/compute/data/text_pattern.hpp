// A pattern in texts, a regular expression (PCRE2) or a text of its own, and cutting or changing a text by its matches.
// Inside runtime/data. One thread at a time.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::data {

// What becomes of the matches when a text is cut by them, as Hugging Face's tokenizers name it: words of their own
// (isolated), gone (removed), the end of the word before (with_previous), the begin of the next one (with_next), or
// words of their own, those side by side as one (contiguous). only: what lies between them is gone.
enum class Cut { isolated, removed, with_previous, with_next, contiguous, only };

class TextPattern {
 public:
  static Result<TextPattern> regex(const std::string& text);  // invalid: what PCRE2 says of it
  static TextPattern literal(std::string text);               // of at least one byte

  // Calls word(text) -> Result<> for each word in order; none is empty. invalid: the pattern gives up.
  template <class F>
  Result<> split(std::string_view text, Cut cut, const F& word) const;
  Result<std::string> replaced(std::string_view text, std::string_view with) const;
  bool matches(std::string_view text) const;  // somewhere
  const std::string* as_literal() const { return code_ ? nullptr : &literal_; }

 private:
  struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };
  // The first match from `at` on that is not empty; false: there is none.
  Result<bool> next(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end) const;

  std::string literal_;
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

template <class F>
Result<> TextPattern::split(std::string_view text, Cut cut, const F& word) const {
  const auto give = [&](std::size_t begin, std::size_t end) -> Result<> {
    if (begin < end) return word(text.substr(begin, end - begin));
    return {};
  };
  // From `held` on nothing was handed out yet; before `at` all was looked at.
  for (std::size_t held = 0, at = 0, begin = 0, end = 0;;) {
    RILLE_TRY(const bool found, next(text, at, begin, end));
    if (!found) begin = end = text.size();
    switch (cut) {
      case Cut::isolated: RILLE_CHECK(give(at, begin)); [[fallthrough]];
      case Cut::only: RILLE_CHECK(give(begin, end)); break;
      case Cut::removed: RILLE_CHECK(give(at, begin)); break;
      case Cut::with_previous: RILLE_CHECK(give(at, end)); break;
      case Cut::with_next:
        RILLE_CHECK(give(held, begin > at ? begin : at));
        held = begin;
        break;
      case Cut::contiguous:
        if (found && begin == at) break;
        RILLE_CHECK(give(held, at));
        RILLE_CHECK(give(at, begin));
        held = begin;
    }
    if (!found) return {};
    at = end;
  }
}

}  // namespace rille::data
