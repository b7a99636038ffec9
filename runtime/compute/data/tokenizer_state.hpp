// What a Tokenizer holds, and how a file's entries get into it. Inside runtime/data.
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
                    "is it the file that came with the model?");
}

struct Tokenizer::State {
  std::string shown;
  Vocabulary vocabulary;
  bool ignore_merges = false;  // a word that is a token is not taken apart
  bool marks_apart = false;    // no merge reaches from a letter over to a mark for a blank behind it
  bool lines_apart = true;
  std::vector<AddedTokens::Token> added;  // as in the file
  AddedTokens in_raw, in_normal;          // looked for before and behind the normalizer
  Normalizer normalizer;
  PreTokenizer cutter;
  Decoder decoder;
  std::vector<std::int32_t> before, behind;  // of the template
  std::unordered_map<std::string, std::vector<std::int32_t>, TextHash, std::equal_to<>> seen;

  Result<> add_token(std::string bytes, std::int64_t id);
  // In the file's own spelling; one that is no bytes is a special one, and stands for its own text.
  Result<> add_spelt(const std::string& token, const Value& id);
  Result<> add_merge(std::string_view left, std::string_view right);
  // normalized: looked for behind the normalizer, by its text as that leaves it.
  Result<> add_added(AddedTokens::Token token, bool normalized);
  // Every byte must have a token then.
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
