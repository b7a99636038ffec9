#include "runtime/compute/data/text_steps.hpp"

#include <fmt/format.h>

#include <charconv>

namespace rille::data {

const char* const gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::size_t mark_bytes_max = 8;
// The longest text that the steps may make from a text of `bytes` bytes.
std::size_t longest(std::size_t bytes) { return 8 * bytes + 4096; }

constexpr const char* default_mark = "\xe2\x96\x81";  // U+2581: stands for a space in the vocabulary

Error unknown(const std::string& shown, const char* role, const std::string& what, const char* known) {
  return make_error(ErrorKind::invalid, fmt::format("{}: a {} of type {} is not supported", shown, role, what),
                    fmt::format("{} are known", known));
}

Error not_whole(const std::string& shown, const Value& json) {
  return make_error(ErrorKind::integrity,
                    fmt::format("{}: a step of the tokenizer is incomplete: {}", shown, json.to_json()),
                    "use the tokenizer file that came with the model");
}

// Reads a pattern: {"String": literal text} or {"Regex": regular expression}.
Result<TextPattern> pattern_of(const Value& step, const std::string& shown) {
  const Value& pattern = step["pattern"];
  if (const std::string* text = pattern["String"].as_string(); text && !text->empty())
    return TextPattern::literal(*text);
  if (const std::string* text = pattern["Regex"].as_string()) return TextPattern::regex(*text);
  return not_whole(shown, step);
}

// Calls add for each part of a step that is a sequence; for any other step, for the step itself.
template <class F>
Result<> each(const Value& step, const char* parts, const std::string& shown, const F& add) {
  const Value::Array* list = step[parts].as_array();
  if (!list) return not_whole(shown, step);
  for (const Value& part : *list) RILLE_CHECK(add(part));
  return {};
}

// When Metaspace puts its mark in front: "always", "first" or "never"; older files use add_prefix_space instead.
std::string scheme_of(const Value& step) {
  const bool* old = step["add_prefix_space"].as_bool();
  return old && !*old ? "never" : step.text("prepend_scheme", "always");
}

bool known_scheme(const std::string& scheme) { return scheme == "always" || scheme == "first" || scheme == "never"; }

}  // namespace

Result<Normalizer> Normalizer::from_json(const Value& json, const std::string& shown) {
  Normalizer out;
  RILLE_CHECK(out.add(json, shown));
  return out;
}

Result<> Normalizer::add(const Value& json, const std::string& shown) {
  const std::string type = json.text("type");
  if (json.is_null() || type == "NFC") return {};
  if (type == "Sequence") return each(json, "normalizers", shown, [&](const Value& part) { return add(part, shown); });
  if (type == "Prepend") {
    steps_.push_back({true, TextPattern::literal(""), json.text("prepend")});
    return {};
  }
  if (type != "Replace") return unknown(shown, "normalizer", type, "Sequence, Prepend, Replace and NFC");
  RILLE_TRY(TextPattern pattern, pattern_of(json, shown));
  steps_.push_back({false, std::move(pattern), json.text("content")});
  return {};
}

Result<std::string> Normalizer::apply(std::string_view text, Start start, const Asked& asked) const {
  RILLE_CHECK(asked.needs(2 * text.size()));
  std::string out(text);
  for (const Step& step : steps_) {
    if (!step.prepend) {
      RILLE_TRY(out, step.pattern.replaced(out, step.text, longest(text.size()), asked));
    } else if (start != Start::continued && !out.empty()) {
      out.insert(0, step.text.substr(0, longest(text.size())));
    }
  }
  return out;
}

bool Normalizer::lines_apart() const {
  for (const Step& step : steps_) {
    const std::string* literal = step.pattern.as_literal();
    if (!step.prepend && (!literal || literal->find('\n') != literal->npos)) return false;
  }
  return true;
}

Result<PreTokenizer> PreTokenizer::from_json(const Value& json, const std::string& shown) {
  PreTokenizer out;
  RILLE_CHECK(out.add(json, shown));
  return out;
}

Result<PreTokenizer> PreTokenizer::from_pattern(const std::string& regex) {
  PreTokenizer out;
  RILLE_TRY(TextPattern pattern, TextPattern::regex(regex));
  out.add_cut(std::move(pattern), Cut::isolated);
  return out;
}

void PreTokenizer::add_cut(TextPattern pattern, Cut cut) {
  Step step;
  step.pattern = std::move(pattern);
  step.cut = cut;
  steps_.push_back(std::move(step));
}

Result<> PreTokenizer::add(const Value& json, const std::string& shown) {
  const std::string type = json.text("type");
  if (json.is_null()) return {};
  if (of_bytes_) return unknown(shown, "pre_tokenizer", type + " behind ByteLevel", "those before ByteLevel");
  if (type == "Sequence")
    return each(json, "pretokenizers", shown, [&](const Value& part) { return add(part, shown); });
  if (type == "Metaspace") return add_metaspace(json, shown);
  if (type == "Split") return add_split(json, shown);
  if (type == "Digits") {
    RILLE_TRY(TextPattern pattern, TextPattern::regex("\\p{N}"));
    add_cut(std::move(pattern), json.boolean("individual_digits") ? Cut::isolated : Cut::contiguous);
    return {};
  }
  if (type != "ByteLevel")
    return unknown(shown, "pre_tokenizer", type, "Sequence, ByteLevel, Metaspace, Split and Digits");
  of_bytes_ = true;
  if (json.boolean("add_prefix_space")) {
    Step step;
    step.mark = " ";
    step.front = Step::Front::always;
    step.cuts = false;
    steps_.push_back(std::move(step));
  }
  if (!json.boolean("use_regex", true)) return {};
  RILLE_TRY(TextPattern pattern, TextPattern::regex(gpt2_pattern));
  add_cut(std::move(pattern), Cut::isolated);
  return {};
}

Result<> PreTokenizer::add_metaspace(const Value& json, const std::string& shown) {
  const std::string scheme = scheme_of(json);
  if (!known_scheme(scheme)) return not_whole(shown, json);
  Step step;
  step.front = scheme == "always" ? Step::Front::always : scheme == "first" ? Step::Front::first : Step::Front::never;
  step.mark = json.text("replacement", default_mark);
  if (step.mark.empty() || step.mark.size() > mark_bytes_max) return not_whole(shown, json);
  step.pattern = TextPattern::literal(step.mark);
  step.cut = Cut::with_next;
  step.cuts = json.boolean("split", true);
  steps_.push_back(std::move(step));
  return {};
}

Result<> PreTokenizer::add_split(const Value& json, const std::string& shown) {
  static constexpr std::pair<const char*, Cut> behaviors[] = {{"Isolated", Cut::isolated},
                                                              {"Removed", Cut::removed},
                                                              {"MergedWithPrevious", Cut::with_previous},
                                                              {"MergedWithNext", Cut::with_next},
                                                              {"Contiguous", Cut::contiguous}};
  const std::string behavior = json.text("behavior");
  const bool invert = json.boolean("invert");
  for (const auto& [name, cut] : behaviors) {
    if (behavior != name) continue;
    RILLE_TRY(TextPattern pattern, pattern_of(json, shown));
    if (invert && cut != Cut::isolated && cut != Cut::removed) break;
    add_cut(std::move(pattern), invert && cut == Cut::removed ? Cut::only : cut);
    return {};
  }
  return unknown(shown, "pre_tokenizer", fmt::format("Split with behavior {}{}", behavior, invert ? ", inverted" : ""),
                 "Isolated, Removed (both also inverted), MergedWithPrevious, MergedWithNext and Contiguous");
}

std::string PreTokenizer::marked(const Step& step, std::string_view text, Start start) {
  std::string out;
  out.reserve(text.size() + step.mark.size());
  for (const char c : text) {
    if (c == ' ') out += step.mark;
    else out += c;
  }
  const bool front = step.front == Step::Front::always ? start != Start::continued
                                                       : step.front == Step::Front::first && start == Start::text;
  if (front && !out.starts_with(step.mark)) out.insert(0, step.mark);
  return out;
}

int byte_of_token(std::string_view token) {
  unsigned value = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto [end, failed] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return failed == std::errc() && end == token.data() + 5 ? static_cast<int>(value) : -1;
}

Result<Decoder> Decoder::from_json(const Value& json, const std::string& shown) {
  Decoder out;
  out.given_ = !json.is_null();
  if (out.given_) RILLE_CHECK(out.add(json, shown));
  return out;
}

Result<> Decoder::add(const Value& json, const std::string& shown) {
  const std::string type = json.text("type");
  if (type == "Sequence") return each(json, "decoders", shown, [&](const Value& part) { return add(part, shown); });
  Step step{Kind::fuse, TextPattern::literal(""), {}};
  if (type == "Replace") {
    step.kind = Kind::replace;
    RILLE_TRY(step.pattern, pattern_of(json, shown));
    step.text = json.text("content");
  } else if (type == "ByteFallback") {
    step.kind = Kind::bytes;
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    step.text = json.text("content", " ");
    step.front = json.integer("start");
    step.back = json.integer("stop");
    if (step.text.empty()) return not_whole(shown, json);
  } else if (type == "Metaspace") {
    const std::string mark = json.text("replacement", default_mark), scheme = scheme_of(json);
    if (mark.empty() || !known_scheme(scheme)) return not_whole(shown, json);
    step.kind = Kind::metaspace;
    step.pattern = TextPattern::literal(mark);
    step.front = scheme != "never";
  } else if (type != "Fuse") {
    return unknown(shown, "decoder", type, "Sequence, Replace, ByteFallback, Fuse, Strip and Metaspace");
  }
  steps_.push_back(std::move(step));
  return {};
}

Result<std::string> Decoder::text(std::vector<std::string> tokens, bool continued, const Asked& asked) const {
  std::string all;
  bool fused = false;
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  for (const Step& step : steps_) {
    std::size_t room = longest(bytes);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      const bool begins = i == 0 && !continued;
      if (i % 1000 == 0) asked.looks();
      if (step.kind == Kind::replace) {
        RILLE_TRY(token, step.pattern.replaced(token, step.text, room, asked));
        room -= token.size();
      } else if (step.kind == Kind::metaspace) {
        RILLE_TRY(token, step.pattern.replaced(token, begins && step.front ? "" : " ", room, asked));
        room -= token.size();
      } else if (step.kind == Kind::bytes) {
        if (const int byte = byte_of_token(token); byte >= 0) token.assign(1, static_cast<char>(byte));
      } else if (step.kind == Kind::strip) {
        const std::size_t n = step.text.size();
        std::size_t front = 0;
        for (auto k = fused && !begins ? 0 : step.front; k > 0 && token.compare(front, n, step.text) == 0; --k)
          front += n;
        token.erase(0, front);
        for (auto k = step.back; k > 0 && token.ends_with(step.text); --k) token.resize(token.size() - n);
      }
    }
    if (step.kind != Kind::fuse) continue;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::exchange(all, {}));
    fused = true;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!given_ && (i > 0 || continued)) all += ' ';
    all += tokens[i];
  }
  return all;
}

}  // namespace rille::data
