// The state of a Tokenizer, and how a file's entries are added to it. Private to runtime/compute/data.
#pragma once

#include <fmt/format.h>

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
  Vocabulary vocabulary;
  bool ignore_merges = false;  // a word that is a token is not split
  bool marks_apart = false;    // no merge joins a letter with a following mark for a blank
  bool lines_apart = true;
  std::vector<AddedTokens::Token> added;  // as in the file
  AddedTokens in_raw, in_normal;          // matched before and after the normalizer
  Normalizer normalizer;
  PreTokenizer cutter;
  Decoder decoder;
  std::vector<std::int32_t> before, behind;  // of the template
  std::unordered_map<std::string, std::vector<std::int32_t>, TextHash, std::equal_to<>> seen;

  Result<> add_token(std::string bytes, std::int64_t id);
  // In the file's own spelling; one that does not decode to bytes is a special token, whose text is its spelling.
  Result<> add_spelt(const std::string& token, const Value& id);
  Result<> add_merge(std::string_view left, std::string_view right);
  // normalized: matched after the normalizer, by its normalized text.
  Result<> add_added(AddedTokens::Token token, bool normalized);
  // Requires a token for every byte.
  Result<> finish_bytes();
  void finish_characters();

  Result<> encode_piece(std::string_view text, Start start, bool special, std::vector<std::int32_t>& out);

 private:
  Result<> encode_words(std::string_view text, Start start, std::vector<std::int32_t>& out);
  void encode_word(std::string_view word, std::vector<std::int32_t>& out);
  void merge(std::string_view part, std::vector<std::int32_t>& out);
};

// The name of a known pattern, or a regular expression.
std::string tokenizer_pattern(const std::string& name);

}  // namespace rille::data
