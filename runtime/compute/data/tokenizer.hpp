// Tokenizer: byte-pair encoding by a vocabulary from a file. Reads what models come with: Hugging Face's tokenizer.json
// (of bytes: GPT-2, Llama 3, Qwen ..; of characters, with bytes for those that are no token: Llama 2, Mistral, Gemma),
// GPT-2's vocab.json and merges.txt in one directory, and tiktoken's files of base64 tokens by rank. Text is cut into
// words by the vocabulary's own pattern (PCRE2), each word's bytes or characters are merged pair by pair, the pair of
// the lowest rank first. Every byte string can be encoded, also one that is not UTF-8.
//
// A Tokenizer belongs to one thread at a time: it remembers the words that it has seen. Errors: io (missing,
// unreadable); integrity, naming the file and what is wrong in it; invalid (a kind of tokenizer that is not byte-pair
// encoding, a step or a pattern that is not known, an id that does not exist).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::data {

struct Encoding {
  // Whether special tokens that are spelt out in the text ("<|endoftext|>") become their ids; what comes from others
  // should not be able to say them.
  bool special = false;
  bool before = false, behind = false;  // whether to add what the model's template has there ("<s>")
  bool continued = false;               // the text goes on behind another: no blank is put in front
};

class Tokenizer {
 public:
  // path: a file (tokenizer.json, *.tiktoken) or a directory that has tokenizer.json, or vocab.json and merges.txt.
  // pattern: how words are cut: "gpt2", "cl100k", "llama3", or a regular expression; "" takes that of the file, which
  // tiktoken's files do not have.
  static Result<Tokenizer> open(const std::string& path, const std::string& pattern = "");
  // The same from texts, for tests and fuzzers; `shown` names the source in messages.
  static Result<Tokenizer> from_tokenizer_json(std::string_view text, const std::string& shown,
                                               const std::string& pattern = "");
  static Result<Tokenizer> from_gpt2(std::string_view vocab_json, std::string_view merges, const std::string& shown,
                                     const std::string& pattern = "");
  static Result<Tokenizer> from_tiktoken(std::string_view text, const std::string& shown, const std::string& pattern);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  Result<std::vector<std::int32_t>> encode(std::string_view text, const Encoding& how = {});
  // The bytes; a cut sequence of ids may end in the middle of a character. continued: the ids go on behind others, so
  // that a blank that encoding puts in front of a text is kept.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool continued = false) const;

  std::int64_t size() const;  // one more than the largest id
  // Of a token's bytes, or as the vocabulary spells it where it is of characters; also of a special one.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  // Whether a text may be cut behind a line's end between two characters that are no space, and the pieces be encoded
  // by themselves, the later ones as `continued`.
  bool lines_apart() const;
  std::vector<std::string> special() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rille::data
