#include "runtime/data/tokenizer.hpp"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/base/base64.hpp"
#include "runtime/base/value.hpp"
#include "runtime/data/bpe.hpp"
#include "runtime/store/file.hpp"

namespace rille::data {

namespace {

constexpr std::int64_t ids_max = 1 << 24;          // more is a damaged file
constexpr std::size_t words_kept = 1 << 16, kept_bytes_max = 32;

// How GPT-2 (github.com/openai/gpt-2), tiktoken's cl100k_base and Llama 3 cut words.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* cl100k_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Error broken(const std::string& shown, const std::string& what) {
  return make_error(ErrorKind::integrity, fmt::format("{}: {}", shown, what),
                    "is it the file that came with the model?");
}

class Pattern {
 public:
  static Result<Pattern> compile(const std::string& text) {
    Pattern p;
    int code = 0;
    PCRE2_SIZE at = 0;
    p.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &code, &at, nullptr));
    if (!p.code_) {
      PCRE2_UCHAR message[200];
      pcre2_get_error_message(code, message, sizeof message);
      return make_error(ErrorKind::invalid, fmt::format("the tokenizer's pattern: {} at its place {}",
                                                        reinterpret_cast<const char*>(message), at),
                        "patterns are regular expressions; \"gpt2\", \"cl100k\" and \"llama3\" are known by name");
    }
    (void)pcre2_jit_compile(p.code_.get(), PCRE2_JIT_COMPLETE);  // where it cannot, matching is slower
    p.match_.reset(pcre2_match_data_create_from_pattern(p.code_.get(), nullptr));
    return p;
  }

  // Calls word(text) for each match and for what lies between them, in order.
  template <class F>
  Result<> split(std::string_view text, const F& word) const {
    for (std::size_t from = 0, at = 0; from < text.size();) {
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0,
                                    match_.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) {
        word(text.substr(from));
        break;
      }
      if (found < 0)
        return make_error(ErrorKind::invalid, fmt::format("the tokenizer's pattern gives up after {} bytes (code {})",
                                                          at, found),
                          "give it shorter texts, or a simpler pattern");
      const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match_.get());
      const std::size_t begin = std::max<std::size_t>(place[0], from), end = std::max<std::size_t>(place[1], begin);
      if (begin > from) word(text.substr(from, begin - from));
      if (end > begin) word(text.substr(begin, end - begin));
      from = end;
      at = end > begin ? end : end + 1;            // an empty match: go on behind it
      if (at > text.size()) {
        if (from < text.size()) word(text.substr(from));
        break;
      }
    }
    return {};
  }

 private:
  struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

// GPT-2's vocabulary files write bytes as characters: printable ones as themselves, the others from U+0100 on.
struct Letters {
  std::int32_t byte_of[512];
  Letters() {
    std::fill(std::begin(byte_of), std::end(byte_of), -1);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      byte_of[itself ? b : next++] = b;
    }
  }
};

// Nothing where it has a character that stands for no byte.
std::optional<std::string> bytes_of_letters(std::string_view text) {
  static const Letters letters;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = std::uint8_t(text[i]);
    std::int32_t code = c;
    if (c >= 0x80) {
      if ((c & 0xE0) != 0xC0 || i + 1 >= text.size()) return std::nullopt;
      code = (c & 0x1F) << 6 | (std::uint8_t(text[i + 1]) & 0x3F);
      ++i;
    }
    ++i;
    if (code >= 512 || letters.byte_of[code] < 0) return std::nullopt;
    out.push_back(char(letters.byte_of[code]));
  }
  return out;
}

std::string pattern_of(const std::string& name) {
  if (name == "gpt2") return gpt2_pattern;
  if (name == "cl100k" || name == "llama3") return cl100k_pattern;
  return name;
}

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::int32_t>> added;     // longest first: found in texts before they are cut
  std::vector<bool> is_special;                                // by id
  std::unordered_map<std::string, std::vector<std::int32_t>, TextHash, std::equal_to<>> seen;
  std::optional<Pattern> pattern;
  std::string shown;

  Result<> add_token(std::string bytes, std::int64_t id) {
    if (id < 0 || id >= ids_max) return broken(shown, fmt::format("a token with the id {}", id));
    auto& all = vocabulary;
    const auto at = std::size_t(id);
    if (at >= all.bytes.size()) {
      all.bytes.resize(at + 1);
      all.known.resize(at + 1);
    }
    if (all.known[at]) return broken(shown, fmt::format("the id {} twice", id));
    all.known[at] = true;
    all.ids.emplace(bytes, std::int32_t(id));
    all.bytes[at] = std::move(bytes);
    return {};
  }

  // A token of the file's own spelling; one that is no bytes is a special one, and stands for its own text.
  Result<> add_lettered(const std::string& token, const Value& id) {
    const double* number = id.as_number();
    if (!number || *number != double(std::int64_t(*number)))
      return broken(shown, fmt::format("the token '{}' has the id {}", token, id.to_json()));
    auto bytes = bytes_of_letters(token);
    return add_token(bytes ? std::move(*bytes) : token, std::int64_t(*number));
  }

  Result<> add_merge(std::string_view left, std::string_view right) {
    const auto a = bytes_of_letters(left), b = bytes_of_letters(right);
    if (!a || !b) return broken(shown, fmt::format("the merge '{} {}' is not of bytes", left, right));
    const auto x = vocabulary.ids.find(*a), y = vocabulary.ids.find(*b), z = vocabulary.ids.find(*a + *b);
    const auto end = vocabulary.ids.end();
    if (x == end || y == end || z == end)
      return broken(shown, fmt::format("the merge '{} {}' is of tokens that are not there", left, right));
    const auto rank = std::int32_t(vocabulary.merges.size());
    vocabulary.merges.try_emplace(Vocabulary::pair(x->second, y->second), Vocabulary::Merge{rank, z->second});
    return {};
  }

  Result<> finish(const std::string& wanted, const std::string& own) {
    for (int b = 0; b < 256; ++b) {
      const auto found = vocabulary.ids.find(std::string(1, char(b)));
      if (found == vocabulary.ids.end()) return broken(shown, fmt::format("there is no token for the byte {}", b));
      vocabulary.of_byte[b] = found->second;
    }
    is_special.resize(vocabulary.bytes.size());
    std::stable_sort(added.begin(), added.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    const std::string text = pattern_of(wanted.empty() ? own : wanted);
    if (text.empty())
      return make_error(ErrorKind::invalid, fmt::format("{}: nothing says how its words are cut", shown),
                        "pass pattern = \"gpt2\", \"cl100k\", \"llama3\", or a regular expression");
    RILLE_TRY(pattern, Pattern::compile(text));
    return {};
  }

  Result<> encode_words(std::string_view text, std::vector<std::int32_t>& out) {
    return pattern->split(text, [&](std::string_view word) {
      if (const auto known = seen.find(word); known != seen.end()) {
        out.insert(out.end(), known->second.begin(), known->second.end());
        return;
      }
      const std::size_t before = out.size();
      merge_word(vocabulary, word, out);
      if (word.size() > kept_bytes_max) return;
      if (seen.size() >= words_kept) seen.clear();
      seen.emplace(word, std::vector<std::int32_t>(out.begin() + std::ptrdiff_t(before), out.end()));
    });
  }

  // The first added token in the text from `at` on that counts; of several at one place the longest.
  std::size_t next_added(std::string_view text, std::size_t at, bool special, std::size_t* which) const {
    std::size_t first = std::string_view::npos;
    for (std::size_t i = 0; i < added.size(); ++i) {
      if (!special && is_special[std::size_t(added[i].second)]) continue;
      const std::size_t found = text.substr(0, first == text.npos ? text.size() : std::min(text.size(), first +
                                            added[i].first.size())).find(added[i].first, at);
      if (found < first) first = found, *which = i;
    }
    return first;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, bool special) {
  std::vector<std::int32_t> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t which = 0;
    const std::size_t found = state_->next_added(text, at, special, &which);
    RILLE_CHECK(state_->encode_words(text.substr(at, found == text.npos ? text.npos : found - at), out));
    if (found == text.npos) break;
    out.push_back(state_->added[which].second);
    at = found + state_->added[which].first.size();
  }
  return out;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids) const {
  const auto& all = state_->vocabulary;
  std::string out;
  for (const std::int32_t id : ids) {
    if (id < 0 || std::size_t(id) >= all.bytes.size() || !all.known[std::size_t(id)])
      return make_error(ErrorKind::invalid,
                        fmt::format("there is no token {}; this vocabulary has {} ids", id, size()));
    out += all.bytes[std::size_t(id)];
  }
  return out;
}

std::int64_t Tokenizer::size() const { return std::int64_t(state_->vocabulary.bytes.size()); }

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const auto& [text, id] : state_->added) if (text == token) return id;
  const auto found = state_->vocabulary.ids.find(token);
  if (found == state_->vocabulary.ids.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Tokenizer::special() const {
  std::vector<std::string> out;
  for (const auto& [text, id] : state_->added) if (state_->is_special[std::size_t(id)]) out.push_back(text);
  return out;
}

namespace {

// The pattern of a byte-level pre-tokenizer; "" where there is none that is known.
std::string pattern_in(const Value& pre) {
  const std::string type = pre.text("type");
  if (type == "ByteLevel") return pre["use_regex"].is_null() || pre.boolean("use_regex") ? gpt2_pattern : "";
  if (type == "Split" && !pre.boolean("invert")) return pre["pattern"].text("Regex");
  if (type != "Sequence") return "";
  if (const Value::Array* parts = pre["pretokenizers"].as_array())
    for (const Value& part : *parts)
      if (std::string found = pattern_in(part); !found.empty()) return found;
  return "";
}

bool is_byte_level(const Value& pre) {
  if (pre.text("type") == "ByteLevel") return true;
  const Value::Array* parts = pre["pretokenizers"].as_array();
  return parts && std::any_of(parts->begin(), parts->end(), is_byte_level);
}

Result<Value> parse(std::string_view text, const std::string& shown) {
  Result<Value> v = Value::from_json(text);
  if (!v) return broken(shown, v.error().message);
  return v;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view text, const std::string& shown,
                                                 const std::string& pattern) {
  RILLE_TRY(const Value file, parse(text, shown));
  const Value& model = file["model"];
  const Value::Object* vocab = model["vocab"].as_object();
  const Value::Array* merges = model["merges"].as_array();
  const std::string type = model.text("type", "BPE");
  if (type != "BPE" || !is_byte_level(file["pre_tokenizer"]))
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: a tokenizer of type {}{}", shown, type,
                                  type == "BPE" ? " that does not work on bytes" : ""),
                      "byte-level BPE can be read: that of GPT-2, Llama 3, Qwen and their like");
  if (!vocab || !merges) return broken(shown, "model.vocab or model.merges is missing");
  auto state = std::make_unique<State>();
  state->shown = shown;
  for (const auto& [token, id] : *vocab) RILLE_CHECK(state->add_lettered(token, id));
  for (const Value& merge : *merges) {
    if (const Value::Array* two = merge.as_array(); two && two->size() == 2 && (*two)[0].as_string() &&
                                                    (*two)[1].as_string()) {
      RILLE_CHECK(state->add_merge(*(*two)[0].as_string(), *(*two)[1].as_string()));
      continue;
    }
    const std::string* line = merge.as_string();
    const std::size_t gap = line ? line->find(' ') : std::string::npos;
    if (gap == std::string::npos) return broken(shown, "a merge that is not of two tokens: " + merge.to_json());
    RILLE_CHECK(state->add_merge(line->substr(0, gap), line->substr(gap + 1)));
  }
  if (const Value::Array* added = file["added_tokens"].as_array()) {
    for (const Value& one : *added) {
      const std::string content = one.text("content");
      const std::int64_t id = one.integer("id", -1);
      if (content.empty()) return broken(shown, "an added token without content");
      const auto known = state->vocabulary.ids.find(content);
      if (known == state->vocabulary.ids.end() || known->second != id) {
        const bool taken = id >= 0 && std::size_t(id) < state->vocabulary.known.size() &&
                           state->vocabulary.known[std::size_t(id)];
        if (taken) state->vocabulary.bytes[std::size_t(id)] = content;  // spelt in letters that are no bytes
        else RILLE_CHECK(state->add_token(content, id));
      }
      state->added.emplace_back(content, std::int32_t(id));
      state->is_special.resize(state->vocabulary.bytes.size());
      state->is_special[std::size_t(id)] = one.boolean("special");
    }
  }
  RILLE_CHECK(state->finish(pattern, pattern_in(file["pre_tokenizer"])));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::from_gpt2(std::string_view vocab_json, std::string_view merges, const std::string& shown,
                                       const std::string& pattern) {
  RILLE_TRY(const Value vocab, parse(vocab_json, shown + "/vocab.json"));
  if (!vocab.as_object()) return broken(shown + "/vocab.json", "not an object of tokens and ids");
  auto state = std::make_unique<State>();
  state->shown = shown + "/vocab.json";
  for (const auto& [token, id] : *vocab.as_object()) RILLE_CHECK(state->add_lettered(token, id));
  state->shown = shown + "/merges.txt";
  while (!merges.empty()) {
    const std::size_t end = merges.find('\n');
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(end == merges.npos ? merges.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t gap = line.find(' ');
    if (gap == line.npos) return broken(state->shown, fmt::format("a line that is not two tokens: '{}'", line));
    RILLE_CHECK(state->add_merge(line.substr(0, gap), line.substr(gap + 1)));
  }
  state->is_special.resize(state->vocabulary.bytes.size());
  if (const auto end = state->vocabulary.ids.find("<|endoftext|>"); end != state->vocabulary.ids.end()) {
    state->added.emplace_back(end->first, end->second);
    state->is_special[std::size_t(end->second)] = true;
  }
  RILLE_CHECK(state->finish(pattern, gpt2_pattern));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::from_tiktoken(std::string_view text, const std::string& shown,
                                           const std::string& pattern) {
  auto state = std::make_unique<State>();
  state->shown = shown;
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
    if (!bytes || rank < 0) return broken(shown, fmt::format("line {}: not a token in base64 and its rank", number));
    RILLE_CHECK(state->add_token(std::move(*bytes), rank));
  }
  RILLE_CHECK(state->finish(pattern, ""));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::open(const std::string& path, const std::string& pattern) {
  std::error_code ec;
  if (!std::filesystem::is_directory(path, ec)) {
    RILLE_TRY(const std::string text, store::read_file(path));
    if (path.ends_with(".tiktoken") || path.ends_with(".bpe")) return from_tiktoken(text, path, pattern);
    return from_tokenizer_json(text, path, pattern);
  }
  if (std::filesystem::exists(path + "/tokenizer.json", ec)) return open(path + "/tokenizer.json", pattern);
  if (!std::filesystem::exists(path + "/vocab.json", ec) || !std::filesystem::exists(path + "/merges.txt", ec))
    return make_error(ErrorKind::io, fmt::format("{} has neither tokenizer.json nor vocab.json and merges.txt", path),
                      "those are the files that models on Hugging Face come with");
  RILLE_TRY(const std::string vocab, store::read_file(path + "/vocab.json"));
  RILLE_TRY(const std::string merges, store::read_file(path + "/merges.txt"));
  return from_gpt2(vocab, merges, path, pattern);
}

}  // namespace rille::data
