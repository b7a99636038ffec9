// What a tokenizer.json does to texts around its vocabulary: normalizers before added tokens are looked for, the
// pre-tokenizer that cuts words, the decoder that makes text of tokens again. Steps that are not known are refused when
// the file is read, since leaving one out would give other ids. After github.com/huggingface/tokenizers. Inside
// runtime/data.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/compute/data/text_pattern.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

extern const char* const gpt2_pattern;  // how GPT-2 cuts words

// Where a piece of text stands: at the begin of the whole text, behind an added token, or behind a piece of the same
// text that was encoded before.
enum class Start { text, token, continued };

class Normalizer {
 public:
  // Sequence, Prepend, Replace; NFC counts for nothing: texts are taken to be composed already.
  static Result<Normalizer> from_json(const Value& json, const std::string& shown);
  bool changes() const { return !steps_.empty(); }
  Result<std::string> apply(std::string_view text, Start start) const;
  // Whether a text may be cut behind a line's end and its pieces be changed by themselves.
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
  // Sequence, ByteLevel, Metaspace, Split, Digits, or null: the whole text is one word.
  static Result<PreTokenizer> from_json(const Value& json, const std::string& shown);
  static Result<PreTokenizer> from_pattern(const std::string& regex);
  bool of_bytes() const { return of_bytes_; }

  // Calls word(text) -> Result<> for each word in order.
  template <class F>
  Result<> words(std::string_view text, Start start, const F& word) const {
    return from(0, text, start, word);
  }

 private:
  // A mark: spaces become it, and it is put in front; or a blank in front (mark == " "); or a cut by a pattern.
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
  Result<> from(std::size_t at, std::string_view text, Start start, const F& word) const {
    if (at == steps_.size()) return word(text);
    const Step& step = steps_[at];
    std::string changed;
    if (!step.mark.empty()) text = changed = marked(step, text, start);
    if (!step.cuts) return from(at + 1, text, start, word);
    return step.pattern.split(text, step.cut, [&](std::string_view piece) -> Result<> {
      return from(at + 1, piece, piece.data() == text.data() ? start : Start::token, word);
    });
  }

  std::vector<Step> steps_;
  bool of_bytes_ = false;
};

class Decoder {
 public:
  // Sequence, Replace, ByteFallback, Fuse, Strip, Metaspace; null: tokens with a blank between them.
  static Result<Decoder> from_json(const Value& json, const std::string& shown);
  // continued: tokens came before these, so nothing is taken off in front. Bytes that are no character stay bytes.
  Result<std::string> text(std::vector<std::string> tokens, bool continued) const;

 private:
  enum class Kind { replace, bytes, fuse, strip, metaspace };
  struct Step {
    Kind kind;
    TextPattern pattern;
    std::string text;                  // put in place of it, or taken off
    std::int64_t front = 0, back = 0;  // how often it is taken off; metaspace: front is 1 where it was put
  };
  Result<> add(const Value& json, const std::string& shown);
  std::vector<Step> steps_;
  bool given_ = false;
};

// <0x00> to <0xFF>: the byte; else -1.
int byte_of_token(std::string_view token);

}  // namespace rille::data
