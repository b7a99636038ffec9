// Reads tokenizers of GPT-2 and tiktoken, and chooses the format by path. tokenizer_json.cpp reads Hugging Face's.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/compute/data/tokenizer_state.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {

namespace {

// The pattern with which tiktoken's cl100k_base and Llama 3 split words.
constexpr const char* cl100k_pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                                       R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::string tokenizer_pattern(const std::string& name) {
  if (name == "gpt2") return gpt2_pattern;
  if (name == "cl100k" || name == "llama3") return cl100k_pattern;
  return name;
}

Result<Tokenizer> Tokenizer::from_gpt2(std::string_view vocab_json, std::string_view merges, const std::string& shown,
                                       const std::string& pattern) {
  auto state = std::make_unique<State>();
  state->shown = shown + "/vocab.json";
  state->ids_max = ids_max_of(vocab_json);
  const Result<Value> vocab = plain_json(vocab_json);
  if (!vocab) return broken_tokenizer(state->shown, vocab.error().message);
  if (!vocab->as_object()) return broken_tokenizer(state->shown, "not an object of tokens and ids");
  for (const auto& [token, id] : *vocab->as_object()) RILLE_CHECK(state->add_spelt(token, id));
  state->shown = shown + "/merges.txt";
  while (!merges.empty()) {
    const std::size_t end = merges.find('\n');
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(end == merges.npos ? merges.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t gap = line.find(' ');
    if (gap == line.npos) return broken_tokenizer(state->shown, fmt::format("a line without two tokens: '{}'", line));
    RILLE_CHECK(state->add_merge(line.substr(0, gap), line.substr(gap + 1)));
  }
  if (const auto end = state->vocabulary.ids.find("<|endoftext|>"); end != state->vocabulary.ids.end())
    RILLE_CHECK(state->add_added({.text = end->first, .id = end->second, .special = true}, false));
  RILLE_CHECK(state->finish_bytes());
  RILLE_TRY(state->cutter, PreTokenizer::from_pattern(pattern.empty() ? gpt2_pattern : tokenizer_pattern(pattern)));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::from_tiktoken(std::string_view text, const std::string& shown,
                                           const std::string& pattern) {
  auto state = std::make_unique<State>();
  state->shown = shown;
  state->ids_max = ids_max_of(text);
  state->vocabulary.by_rank = true;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const std::size_t gap = line.find(' ');
    std::int64_t rank = -1;
    Result<std::string> bytes = from_base64(line.substr(0, std::min(gap, line.size())));
    if (gap != line.npos) std::from_chars(line.data() + gap + 1, line.data() + line.size(), rank);
    if (!bytes || rank < 0)
      return broken_tokenizer(shown, fmt::format("line {}: not a token in base64 and its rank", number));
    RILLE_CHECK(state->add_token(std::move(*bytes), rank));
  }
  RILLE_CHECK(state->finish_bytes());
  if (pattern.empty())
    return make_error(ErrorKind::invalid, fmt::format("{}: the file has no pattern for splitting words", shown),
                      "pass pattern = \"gpt2\", \"cl100k\", \"llama3\", or a regular expression");
  RILLE_TRY(state->cutter, PreTokenizer::from_pattern(tokenizer_pattern(pattern)));
  return Tokenizer(std::move(state));
}

// Asks for room first, because parsed JSON takes many times the bytes of its text.
static Result<std::string> read_text(const std::string& path, const Asked& asked) {
  constexpr std::size_t bytes_of_byte = 24, bytes_max = 256 << 20, bytes_least = 4096;
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  const std::size_t bytes = ec ? bytes_least : std::clamp<std::size_t>(size, bytes_least, bytes_max);
  RILLE_CHECK(asked.needs(bytes * bytes_of_byte));
  return store::read_file(path, static_cast<std::int64_t>(bytes));
}

std::vector<std::string> tokenizer_files(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_directory(path, ec)) return {path};
  if (std::filesystem::exists(path + "/tokenizer.json", ec)) return {path + "/tokenizer.json"};
  return {path + "/vocab.json", path + "/merges.txt"};
}

Result<Tokenizer> Tokenizer::open(const std::string& path, const std::string& pattern, const Asked& asked) {
  std::error_code ec;
  if (!std::filesystem::is_directory(path, ec)) {
    RILLE_TRY(const std::string text, read_text(path, asked));
    if (path.ends_with(".tiktoken") || path.ends_with(".bpe")) return from_tiktoken(text, path, pattern);
    return from_tokenizer_json(text, path, pattern);
  }
  if (std::filesystem::exists(path + "/tokenizer.json", ec)) return open(path + "/tokenizer.json", pattern, asked);
  if (!std::filesystem::exists(path + "/vocab.json", ec) || !std::filesystem::exists(path + "/merges.txt", ec))
    return make_error(ErrorKind::io, fmt::format("{} has neither tokenizer.json nor vocab.json and merges.txt", path),
                      "models on Hugging Face ship with these files");
  RILLE_TRY(const std::string vocab, read_text(path + "/vocab.json", asked));
  RILLE_TRY(const std::string merges, read_text(path + "/merges.txt", asked));
  return from_gpt2(vocab, merges, path, pattern);
}

}  // namespace rille::data
