// The internals of a Tokenizer, and the functions that add a file's entries to it. Private to runtime/compute/data.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/compute/data/added_tokens.hpp"
#include "runtime/compute/data/bpe.hpp"
#include "runtime/compute/data/text_steps.hpp"
#include "runtime/compute/data/tokenizer.hpp"

namespace rille::data {

inline Error broken_tokenizer(const std::string& shown, const std::string& what) {
  return make_error(ErrorKind::integrity, fmt::format("{}: {}", shown, what),
                    "use the tokenizer file that came with the model");
}

struct Tokenizer::State {
  std::string shown;
  std::shared_ptr<Vocabulary> shared = std::make_shared<Vocabulary>();
  Vocabulary& vocabulary = *shared;  // not changed once the files are read, so twins on other threads share it
  bool ignore_merges = false;        // a word that is itself a token is encoded as that token
  bool marks_apart = false;          // no merge joins a letter with a following mark that stands for a space
  bool lines_apart = true;
  std::vector<AddedTokens::Token> added;  // added tokens in the file's order
  AddedTokens in_raw, in_normal;          // tokens matched before, and tokens matched after the normalizer
  Normalizer normalizer;
  PreTokenizer cutter;
  Decoder decoder;
  Asked asked;                               // set by the running call
  std::int64_t ids_max = 0;                  // a larger id means that the file is damaged
  std::vector<std::int32_t> before, behind;  // ids that the model's template adds before and after a text
  std::unordered_map<std::string, std::vector<std::int32_t>, TextHash, std::equal_to<>> seen;

  Result<> add_token(std::string bytes, std::int64_t id);
  // Adds a token in the file's spelling. A spelling that does not decode to bytes is a special token's text.
  Result<> add_spelt(const std::string& token, const Value& id);
  Result<> add_merge(std::string_view left, std::string_view right);
  // normalized: the token is matched after the normalizer, by its own normalized text.
  Result<> add_added(AddedTokens::Token token, bool normalized);
  // Completes a byte vocabulary. Error integrity: a byte has no token.
  Result<> finish_bytes();
  void finish_characters();

  Result<> encode_piece(std::string_view text, Start start, bool special, std::vector<std::int32_t>& out);

 private:
  Result<> encode_words(std::string_view text, Start start, std::vector<std::int32_t>& out);
  Result<> encode_word(std::string_view word, std::vector<std::int32_t>& out);
  Result<> merge(std::string_view part, std::vector<std::int32_t>& out);
};

// The vocabulary is an array indexed by id; this limit prevents a short file from making it long.
inline std::int64_t ids_max_of(std::string_view file) {
  constexpr std::int64_t least = 1 << 17, most = 1 << 24, bytes_of_token = 4;
  return std::clamp(static_cast<std::int64_t>(file.size()) / bytes_of_token, least, most);
}

// Returns the regular expression of a known pattern ("gpt2"); returns any other `name` as it is.
std::string tokenizer_pattern(const std::string& name);

}  // namespace rille::data
