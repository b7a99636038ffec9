// Tokenizer: byte-pair encoding with a vocabulary from a file. Reads Hugging Face's tokenizer.json (byte-level:
// GPT-2, Llama 3, Qwen ..; characters with byte fallback: Llama 2, Mistral, Gemma), GPT-2's vocab.json and merges.txt
// in one directory, and tiktoken's files of base64 tokens by rank. A pattern of the vocabulary (PCRE2) splits text
// into words; in each word, pairs of bytes or characters are merged, lowest rank first. Every byte string can be
// encoded, even if it is not UTF-8.
//
// A Tokenizer belongs to one thread at a time: it caches words. Errors: io (missing, unreadable); integrity, naming the
// file and the fault; invalid (not byte-pair encoding, an unknown step or pattern, an id that does not exist).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::data {

struct Encoding {
  // Whether special tokens written in the text ("<|endoftext|>") become their ids; text from untrusted sources should
  // not be able to produce them.
  bool special = false;
  // whether to add the ids that the model's template puts before ("<s>") and after a text
  bool before = false, behind = false;
  bool continued = false;  // the text continues an earlier text: no space is put in front
  Asked asked = {};        // room: for texts that the steps change, and for long words
};

// The files that the tokenizer at the path consists of: itself, or those in its folder that open() reads.
std::vector<std::string> tokenizer_files(const std::string& path);

class Tokenizer {
 public:
  // path: a file (tokenizer.json, *.tiktoken) or a directory with tokenizer.json, or with vocab.json and merges.txt.
  // pattern: how text is split into words: "gpt2", "cl100k", "llama3", or a regular expression; "": the pattern in the
  // file. tiktoken's files contain no pattern.
  // asked.room: for reading the files; the tokenizer afterwards uses a quarter of it.
  static Result<Tokenizer> open(const std::string& path, const std::string& pattern = "", const Asked& asked = {});
  // Reads the contents of such files, for tests and fuzzers; `shown` names the source in error messages.
  static Result<Tokenizer> from_tokenizer_json(std::string_view text, const std::string& shown,
                                               const std::string& pattern = "");
  static Result<Tokenizer> from_gpt2(std::string_view vocab_json, std::string_view merges, const std::string& shown,
                                     const std::string& pattern = "");
  static Result<Tokenizer> from_tiktoken(std::string_view text, const std::string& shown, const std::string& pattern);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Another tokenizer with the same vocabulary, for another thread. Call it while no thread uses this one.
  Tokenizer twin() const;

  Result<std::vector<std::int32_t>> encode(std::string_view text, const Encoding& how = {});
  // Returns the text's bytes; a list of ids that was cut may end in the middle of a character. continued: other ids
  // precede these, so the space that encoding puts in front of a text is kept.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool continued = false, const Asked& asked = {}) const;

  std::int64_t size() const;  // the largest id plus one
  // Finds a token, also a special one, by its bytes or, in a character vocabulary, by its spelling in the file.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  // Whether a text may be cut after a line end between two characters that are not spaces, and the pieces encoded
  // separately, with Encoding::continued for all but the first.
  bool lines_apart() const;
  std::vector<std::string> special() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rille::data
