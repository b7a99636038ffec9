// A pattern, either a regular expression (PCRE2) or a literal text, that splits a text at its matches or replaces
// them. Private to runtime/compute/data. One thread at a time; a copy may be
// used by another thread.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>
#include <string_view>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::data {

// How matches split a text, named as in Hugging Face's tokenizers: a match is a word by itself (isolated), dropped
// (removed), the end of the previous word (with_previous), the start of the next word (with_next), or a word together
// with adjacent matches (contiguous). only: keeps the matches and drops the text between them.
enum class Cut { isolated, removed, with_previous, with_next, contiguous, only };

class TextPattern {
 public:
  TextPattern() = default;
  TextPattern(const TextPattern& o) : literal_(o.literal_), code_(o.code_) { prepare(); }
  TextPattern(TextPattern&&) noexcept = default;
  TextPattern& operator=(TextPattern&&) noexcept = default;
  // invalid: not a regular expression; the error has PCRE2's message
  static Result<TextPattern> regex(const std::string& text);
  static TextPattern literal(std::string text);  // the text must have at least one byte

  // Calls word(text) -> Result<> for each nonempty word in order. invalid: PCRE2 reached a limit.
  template <class F>
  Result<> split(std::string_view text, Cut cut, const F& word, const Asked& asked) const;
  // invalid: the result would have more than bytes_max.
  Result<std::string> replaced(std::string_view text, std::string_view with, std::size_t bytes_max,
                               const Asked& asked) const;
  bool matches(std::string_view text) const;  // whether the pattern matches anywhere in the text
  const std::string* as_literal() const { return code_ ? nullptr : &literal_; }

 private:
  struct Free {
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  };
  // Finds the first nonempty match that starts at `at` or later; false: there is none.
  Result<bool> next(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end,
                    const Asked& asked) const;

  void prepare();  // makes match_ and context_ for code_

  std::string literal_;
  std::shared_ptr<const pcre2_code> code_;  // never changes, so copies share it
  std::unique_ptr<pcre2_match_data, Free> match_;
  std::unique_ptr<pcre2_match_context, Free> context_;
};

template <class F>
Result<> TextPattern::split(std::string_view text, Cut cut, const F& word, const Asked& asked) const {
  const auto give = [&](std::size_t begin, std::size_t end) -> Result<> {
    if (begin < end) return word(text.substr(begin, end - begin));
    return {};
  };
  // Text from position `held` on has not been passed to word() yet; text before position `at` has been searched.
  for (std::size_t held = 0, at = 0, begin = 0, end = 0;;) {
    RILLE_TRY(const bool found, next(text, at, begin, end, asked));
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
