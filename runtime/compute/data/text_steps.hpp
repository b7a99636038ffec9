// The steps of a tokenizer.json before and after the byte-pair encoding: normalizers change the text before added
// tokens are matched, the pre-tokenizer splits words, the decoder turns tokens into text. Reading a file with an
// unknown step fails, since skipping the step would give different ids. After github.com/huggingface/tokenizers.
// Private to runtime/compute/data.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/compute/data/text_pattern.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

extern const char* const gpt2_pattern;  // the regular expression with which GPT-2 splits words

// Where a piece of text stands: at the start of the text, after an added token, or after an earlier piece of the text
// that was encoded separately.
enum class Start { text, token, continued };

class Normalizer {
 public:
  // Reads a normalizer: Sequence, Prepend or Replace. NFC is ignored: texts are assumed to be composed.
  static Result<Normalizer> from_json(const Value& json, const std::string& shown);
  bool changes() const { return !steps_.empty(); }
  Result<std::string> apply(std::string_view text, Start start, const Asked& asked) const;
  // Whether a text may be cut after a line end and the two pieces normalized separately.
  bool lines_apart() const;

 private:
  struct Step {
    bool prepend;
    TextPattern pattern;
    std::string text;
  };
  Result<> add(const Value& json, const std::string& shown);
  std::vector<Step> steps_;
};

class PreTokenizer {
 public:
  // Reads a pre-tokenizer: Sequence, ByteLevel, Metaspace, Split or Digits; null: the whole text is one word.
  static Result<PreTokenizer> from_json(const Value& json, const std::string& shown);
  static Result<PreTokenizer> from_pattern(const std::string& regex);
  bool of_bytes() const { return of_bytes_; }

  // Calls word(text) -> Result<> for each word in order.
  template <class F>
  Result<> words(std::string_view text, Start start, const F& word, const Asked& asked) const {
    return from(0, text, start, word, asked);
  }

 private:
  // One step: replaces spaces by a mark and puts the mark in front of the text; or, if mark is " ", puts a space in
  // front; or splits the text by a pattern.
  struct Step {
    enum class Front { never, first, always } front = Front::never;
    std::string mark;
    TextPattern pattern;
    Cut cut = Cut::isolated;
    bool cuts = true;
  };
  Result<> add(const Value& json, const std::string& shown);
  Result<> add_metaspace(const Value& json, const std::string& shown);
  Result<> add_split(const Value& json, const std::string& shown);
  void add_cut(TextPattern pattern, Cut cut);
  static std::string marked(const Step& step, std::string_view text, Start start);

  template <class F>
  Result<> from(std::size_t at, std::string_view text, Start start, const F& word, const Asked& asked) const {
    if (at == steps_.size()) return word(text);
    const Step& step = steps_[at];
    std::string changed;
    if (!step.mark.empty()) {
      RILLE_CHECK(asked.needs(text.size()));
      text = changed = marked(step, text, start);
    }
    if (!step.cuts) return from(at + 1, text, start, word, asked);
    const auto each = [&](std::string_view piece) -> Result<> {
      return from(at + 1, piece, piece.data() == text.data() ? start : Start::token, word, asked);
    };
    return step.pattern.split(text, step.cut, each, asked);
  }

  std::vector<Step> steps_;
  bool of_bytes_ = false;
};

class Decoder {
 public:
  // Reads a decoder: Sequence, Replace, ByteFallback, Fuse, Strip or Metaspace; null: tokens are joined by spaces.
  static Result<Decoder> from_json(const Value& json, const std::string& shown);
  // continued: other tokens precede these, so nothing is stripped in front. Bytes that form no character are returned
  // unchanged.
  Result<std::string> text(std::vector<std::string> tokens, bool continued, const Asked& asked) const;

 private:
  enum class Kind { replace, bytes, fuse, strip, metaspace };
  struct Step {
    Kind kind;
    TextPattern pattern;
    std::string text;  // the replacement, or the text to strip
    // how many characters to strip; for metaspace, front is 1 if encoding added a mark
    std::int64_t front = 0, back = 0;
  };
  Result<> add(const Value& json, const std::string& shown);
  std::vector<Step> steps_;
  bool given_ = false;
};

// Returns the byte of a token "<0x00>" to "<0xFF>"; -1 for any other token.
int byte_of_token(std::string_view token);

}  // namespace rille::data
