// Reads Hugging Face's tokenizer.json: a byte-pair model with its normalizer, pre-tokenizer, decoder, template and
// added tokens. Entries that Rille does not know and that could change ids are refused.
#include "runtime/compute/data/tokenizer_state.hpp"
#include "runtime/core/base/plain_json.hpp"

namespace rille::data {

namespace {

Error refused(const std::string& shown, const std::string& what) {
  return make_error(ErrorKind::invalid, fmt::format("{}: {}", shown, what),
                    "byte-pair encoding of bytes (GPT-2, Llama 3) or of characters (Llama 2, Mistral) is supported");
}

Result<> check_model(const Value& model, const std::string& shown) {
  if (const std::string type = model.text("type", "BPE"); type != "BPE")
    return refused(shown, "a tokenizer of type " + type + " is not supported");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.text(name).empty())
      return refused(shown, fmt::format("a model with {} '{}' is not supported", name, model.text(name)));
  if (model.number("dropout") != 0)
    return refused(shown, "a model with dropout, which gives random ids, is not supported");
  if (!model["vocab"].as_object() || !model["merges"].as_array())
    return broken_tokenizer(shown, "model.vocab or model.merges is missing");
  return {};
}

// Calls add for each merge, which the file writes as a list of two tokens or as a text with a space between them.
template <class F>
Result<> each_merge(const Value& merges, const std::string& shown, const F& add) {
  for (const Value& merge : *merges.as_array()) {
    if (const Value::Array* two = merge.as_array();
        two && two->size() == 2 && (*two)[0].as_string() && (*two)[1].as_string()) {
      RILLE_CHECK(add(*(*two)[0].as_string(), *(*two)[1].as_string()));
      continue;
    }
    const std::string* line = merge.as_string();
    const std::size_t gap = line ? line->find(' ') : std::string::npos;
    if (gap == std::string::npos) return broken_tokenizer(shown, "a merge without two tokens: " + merge.to_json());
    RILLE_CHECK(add(line->substr(0, gap), line->substr(gap + 1)));
  }
  return {};
}

// Returns the token id in `v`; -1 if `v` is not an id.
std::int32_t id_in(const Value& v) {
  const double* n = v.as_number();
  return n && *n >= 0 && *n < 2147483647.0 ? std::int32_t(*n) : -1;
}

// Reads from a post_processor the ids that it adds before and after a single text ("A" in the file).
Result<> read_template(const Value& step, const std::string& shown, std::vector<std::int32_t>& before,
                       std::vector<std::int32_t>& behind) {
  const std::string type = step.text("type");
  const auto wrong = [&] { return broken_tokenizer(shown, "an incomplete post_processor: " + step.to_json()); };
  if (step.is_null() || type == "ByteLevel") return {};
  if (type == "Sequence") {
    if (!step["processors"].as_array()) return wrong();
    for (const Value& part : *step["processors"].as_array()) RILLE_CHECK(read_template(part, shown, before, behind));
    return {};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const Value::Array *cls = step["cls"].as_array(), *sep = step["sep"].as_array();
    if (!cls || !sep || cls->size() != 2 || sep->size() != 2) return wrong();
    before.push_back(id_in((*cls)[1]));
    behind.push_back(id_in((*sep)[1]));
    return {};
  }
  if (type != "TemplateProcessing") return refused(shown, "a post_processor of type " + type + " is not supported");
  const Value::Array* single = step["single"].as_array();
  if (!single) return wrong();
  bool seen = false;
  for (const Value& part : *single) {
    seen = seen || !part["Sequence"].is_null();
    const std::string name = part["SpecialToken"].text("id");
    const Value::Array* ids = step["special_tokens"][name]["ids"].as_array();
    if (part["SpecialToken"].is_null()) continue;
    if (!ids) return wrong();
    for (const Value& id : *ids) (seen ? behind : before).push_back(id_in(id));
  }
  return {};
}

Result<AddedTokens::Token> added_token(const Value& one, const std::string& shown) {
  AddedTokens::Token token{one.text("content"),        id_in(one["id"]),      one.boolean("special"),
                           one.boolean("single_word"), one.boolean("lstrip"), one.boolean("rstrip")};
  if (token.text.empty()) return broken_tokenizer(shown, "an added token without content");
  if (token.id < 0) return broken_tokenizer(shown, fmt::format("a token has the invalid id {}", one["id"].to_json()));
  return token;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view text, const std::string& shown,
                                                 const std::string& pattern) {
  const Result<Value> file = plain_json(text);
  if (!file) return broken_tokenizer(shown, file.error().message);
  const Value& model = (*file)["model"];
  RILLE_CHECK(check_model(model, shown));
  auto state = std::make_unique<State>();
  state->shown = shown;
  state->ids_max = ids_max_of(text);
  RILLE_TRY(state->normalizer, Normalizer::from_json((*file)["normalizer"], shown));
  RILLE_TRY(state->cutter, PreTokenizer::from_json((*file)["pre_tokenizer"], shown));
  Vocabulary& vocabulary = state->vocabulary;
  vocabulary.of_characters = !state->cutter.of_bytes();
  if (vocabulary.of_characters) {
    RILLE_TRY(state->decoder, Decoder::from_json((*file)["decoder"], shown));
    if (!pattern.empty())
      return refused(shown, "the file has its own pattern, so the option `pattern` cannot be given");
  } else if (!pattern.empty()) {
    RILLE_TRY(state->cutter, PreTokenizer::from_pattern(tokenizer_pattern(pattern)));
  }
  for (const auto& [token, id] : *model["vocab"].as_object()) RILLE_CHECK(state->add_spelt(token, id));
  const auto add_merge = [&](std::string_view left, std::string_view right) { return state->add_merge(left, right); };
  RILLE_CHECK(each_merge(model["merges"], shown, add_merge));
  state->ignore_merges = model.boolean("ignore_merges");
  if (vocabulary.of_characters) {
    vocabulary.byte_fallback = model.boolean("byte_fallback");
    vocabulary.fuse_unknown = model.boolean("fuse_unk");
    if (const std::string* unknown = model["unk_token"].as_string()) {
      const auto found = vocabulary.ids.find(*unknown);
      if (found == vocabulary.ids.end())
        return broken_tokenizer(shown, fmt::format("the unknown token '{}' is not in the vocabulary", *unknown));
      vocabulary.unknown = found->second;
    }
    state->finish_characters();
  } else {
    RILLE_CHECK(state->finish_bytes());
  }
  if (const Value::Array* added = (*file)["added_tokens"].as_array()) {
    for (const Value& one : *added) {
      RILLE_TRY(AddedTokens::Token token, added_token(one, shown));
      const bool normalized = one.boolean("normalized", !token.special);
      RILLE_CHECK(state->add_added(std::move(token), normalized));
    }
  }
  RILLE_CHECK(read_template((*file)["post_processor"], shown, state->before, state->behind));
  for (const auto* ids : {&state->before, &state->behind})
    for (const std::int32_t id : *ids)
      if (id < 0 || std::size_t(id) >= vocabulary.known.size() || !vocabulary.known[std::size_t(id)])
        return broken_tokenizer(shown, fmt::format("its template has the id {}, which is not a token", id));
  return Tokenizer(std::move(state));
}

}  // namespace rille::data
