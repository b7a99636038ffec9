#include "runtime/compute/data/tokenizer_state.hpp"

#include <algorithm>
#include <optional>

namespace rille::data {

namespace {

constexpr std::size_t words_kept = 1 << 16, kept_bytes_max = 32;
constexpr std::string_view mark = "\xe2\x96\x81";  // U+2581: stands for a space in the vocabulary

// GPT-2's vocabulary files write each byte as a character: printable bytes as themselves, other bytes from U+0100 on.
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

// Returns the bytes that the characters stand for; nullopt if a character stands for no byte.
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

}  // namespace

Result<> Tokenizer::State::add_token(std::string bytes, std::int64_t id) {
  if (id < 0 || id >= ids_max) return broken_tokenizer(shown, fmt::format("a token has the invalid id {}", id));
  auto& all = vocabulary;
  const auto at = std::size_t(id);
  if (at >= all.bytes.size()) {
    all.bytes.resize(at + 1);
    all.known.resize(at + 1);
  }
  if (all.known[at]) return broken_tokenizer(shown, fmt::format("the id {} is used by two tokens", id));
  all.known[at] = true;
  all.ids.emplace(bytes, std::int32_t(id));
  all.bytes[at] = std::move(bytes);
  return {};
}

Result<> Tokenizer::State::add_spelt(const std::string& token, const Value& id) {
  const double* number = id.as_number();
  if (!number || !(*number >= 0 && *number < double(ids_max)) || *number != double(std::int64_t(*number)))
    return broken_tokenizer(shown, fmt::format("the token '{}' has the invalid id {}", token, id.to_json()));
  auto bytes = vocabulary.of_characters ? std::optional(token) : bytes_of_letters(token);
  return add_token(bytes ? *bytes : token, std::int64_t(*number));
}

Result<> Tokenizer::State::add_merge(std::string_view left, std::string_view right) {
  const bool spelt = vocabulary.of_characters;
  const auto a = spelt ? std::optional(std::string(left)) : bytes_of_letters(left);
  const auto b = spelt ? std::optional(std::string(right)) : bytes_of_letters(right);
  if (!a || !b) return broken_tokenizer(shown, fmt::format("the merge '{} {}' is not of bytes", left, right));
  const auto x = vocabulary.ids.find(*a), y = vocabulary.ids.find(*b), z = vocabulary.ids.find(*a + *b);
  const auto end = vocabulary.ids.end();
  if (x == end || y == end || z == end)
    return broken_tokenizer(shown, fmt::format("the merge '{} {}' has unknown tokens", left, right));
  const auto rank = std::int32_t(vocabulary.merges.size());
  vocabulary.merges.try_emplace(Vocabulary::pair(x->second, y->second), Vocabulary::Merge{rank, z->second});
  return {};
}

Result<> Tokenizer::State::add_added(AddedTokens::Token token, bool normalized) {
  const auto known = vocabulary.ids.find(token.text);
  if (known == vocabulary.ids.end() || known->second != token.id) {
    const auto at = std::size_t(token.id);
    const bool taken = token.id >= 0 && at < vocabulary.known.size() && vocabulary.known[at];
    if (taken) vocabulary.bytes[at] = token.text;  // the token's spelling in the file does not decode to bytes
    else RILLE_CHECK(add_token(token.text, token.id));
  }
  added.push_back(token);
  if (normalized) {
    RILLE_TRY(token.text, normalizer.apply(token.text, Start::text, asked));
    // the decoder reverses the normalization
    if (vocabulary.of_characters) vocabulary.bytes[std::size_t(token.id)] = token.text;
  }
  return (normalized ? in_normal : in_raw).add(std::move(token));
}

Result<> Tokenizer::State::finish_bytes() {
  for (int b = 0; b < 256; ++b) {
    const auto found = vocabulary.ids.find(std::string(1, char(b)));
    if (found == vocabulary.ids.end())
      return broken_tokenizer(shown, fmt::format("there is no token for the byte {}", b));
    vocabulary.of_byte[b] = found->second;
  }
  return {};
}

void Tokenizer::State::finish_characters() {
  const auto id_of = [&](std::string_view token) {
    const auto found = vocabulary.ids.find(token);
    return found == vocabulary.ids.end() ? -1 : found->second;
  };
  bool whole = vocabulary.byte_fallback;
  for (int b = 0; b < 256; ++b) {
    vocabulary.of_byte[b] = id_of(fmt::format("<0x{:02X}>", b));
    whole = whole && vocabulary.of_byte[b] >= 0;
    if (b < 128) vocabulary.of_ascii[b] = id_of(std::string(1, char(b)));
  }
  // An unknown token is held back until the next character is read, unless that character is a token.
  const bool waits = vocabulary.unknown >= 0 && !whole;
  const std::int32_t line = vocabulary.of_ascii[int{'\n'}], line_byte = vocabulary.of_byte[int{'\n'}];
  marks_apart = !waits || id_of(mark) >= 0;
  lines_apart = !ignore_merges && normalizer.lines_apart() && (!waits || line >= 0);
  for (const auto& [pair, joined] : vocabulary.merges) {
    const auto left = std::int32_t(pair >> 32), right = std::int32_t(pair & 0xffffffff);
    const std::string& a = vocabulary.bytes[std::size_t(left)];
    const std::string& b = vocabulary.bytes[std::size_t(right)];
    if (b.starts_with(mark) && !a.ends_with(mark)) marks_apart = false;
    if (a.ends_with('\n') || left == line_byte) lines_apart = false;
  }
}

Result<> Tokenizer::State::encode_piece(std::string_view text, Start start, bool special,
                                        std::vector<std::int32_t>& out) {
  std::string changed;
  if (normalizer.changes()) {
    RILLE_TRY(changed, normalizer.apply(text, start, asked));
    text = changed;
  }
  return in_normal.split(
      text, special,
      [&](std::string_view rest) -> Result<> {
        return encode_words(rest, rest.data() == text.data() ? start : Start::token, out);
      },
      [&](std::int32_t id) { out.push_back(id); }, asked);
}

Result<> Tokenizer::State::encode_words(std::string_view text, Start start, std::vector<std::int32_t>& out) {
  return cutter.words(
      text, start, [&](std::string_view word) { return encode_word(word, out); }, asked);
}

Result<> Tokenizer::State::encode_word(std::string_view word, std::vector<std::int32_t>& out) {
  if (ignore_merges) {
    if (const auto found = vocabulary.ids.find(word); found != vocabulary.ids.end()) {
      out.push_back(found->second);
      return success();
    }
  }
  if (!marks_apart) return merge(word, out);
  // Without a pre-tokenizer the text is one word; if no merge crosses a mark, the parts between marks can be cached.
  for (std::size_t from = 0, at = 0; from < word.size(); from = at) {
    at = from;
    while (word.substr(at).starts_with(mark)) at += mark.size();
    at = std::min(word.find(mark, at), word.size());
    RILLE_CHECK(merge(word.substr(from, at - from), out));
  }
  return success();
}

Result<> Tokenizer::State::merge(std::string_view part, std::vector<std::int32_t>& out) {
  if (const auto known = seen.find(part); known != seen.end()) {
    out.insert(out.end(), known->second.begin(), known->second.end());
    return success();
  }
  const std::size_t before_it = out.size();
  RILLE_CHECK(merge_word(vocabulary, part, out, asked));
  if (part.size() > kept_bytes_max) return success();
  if (seen.size() >= words_kept) seen.clear();
  seen.emplace(part, std::vector<std::int32_t>(out.begin() + std::ptrdiff_t(before_it), out.end()));
  return success();
}

}  // namespace rille::data
