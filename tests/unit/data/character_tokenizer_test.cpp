// Byte-pair encoding of characters, as in Llama 2 and Mistral, with small vocabularies; tests/golden/tokenizers and
// tests/peer/tokenizers compare with Hugging Face's tokenizers on larger ones.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/compute/data/tokenizer.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {
namespace {

using Ids = std::vector<std::int32_t>;
const std::string mark = "\xe2\x96\x81";

// <unk> 0, <s> 1, </s> 2, bytes 3 to 258, then: ▁ 259, a 260, b 261, c 262, ab 263, ▁ab 264, and b▁ 265 where wanted.
struct Shape {
  bool bytes = true, fuse = true, over_blanks = false;
  std::string unknown = "<unk>";
  Value normalizer, pre, decoder;
};

Value json(const std::string& text) { return *Value::from_json(text); }

const Value prepend = json(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
                           R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})");
const Value strip = json(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
                         R"({"type":"ByteFallback"},{"type":"Fuse"},)"
                         R"({"type":"Strip","content":" ","start":1,"stop":0}]})");

Value metaspace(const std::string& scheme, bool split = true) {
  Value v;
  return v.set("type", "Metaspace").set("replacement", mark).set("prepend_scheme", scheme).set("split", split);
}

std::string file(const Shape& s) {
  Value vocab, merges{Value::Array{}}, model, out;
  vocab.set("<unk>", 0).set("<s>", 1).set("</s>", 2);
  for (int b = 0; b < 256 && s.bytes; ++b) vocab.set(fmt::format("<0x{:02X}>", b), b + 3);
  int id = 259;
  for (const std::string& token :
       {mark, std::string("a"), std::string("b"), std::string("c"), std::string("ab"), mark + "ab"})
    vocab.set(token, id++);
  merges.as_array()->push_back("a b");
  merges.as_array()->push_back(mark + " ab");
  if (s.over_blanks) {
    vocab.set("b" + mark, id++);
    merges.as_array()->insert(merges.as_array()->begin(), "b " + mark);
  }
  model.set("type", "BPE").set("vocab", vocab).set("merges", merges).set("byte_fallback", s.bytes);
  model.set("fuse_unk", s.fuse).set("unk_token", s.unknown.empty() ? Value() : Value(s.unknown));
  out.set("model", model).set("normalizer", s.normalizer).set("pre_tokenizer", s.pre).set("decoder", s.decoder);
  out.set("added_tokens", json(R"([{"id":1,"content":"<s>","special":true},)"
                               R"({"id":2,"content":"</s>","special":true}])"));
  out.set("post_processor", json(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
                                 R"({"Sequence":{"id":"A"}},{"SpecialToken":{"id":"</s>"}}],"special_tokens":)"
                                 R"({"<s>":{"ids":[1]},"</s>":{"ids":[2]}}})"));
  return out.to_json();
}

Tokenizer made(const Shape& s) {
  auto t = Tokenizer::from_tokenizer_json(file(s), "t.json");
  if (!t) FAIL(t.error().summary());
  return std::move(*t);
}

}  // namespace

TEST_CASE("Llama 2's shape: a blank in front, blanks as marks, other characters as bytes", "[unit][data]") {
  auto t = made({.normalizer = prepend, .decoder = strip});
  CHECK(*t.encode("ab ab") == Ids{264, 264});
  CHECK(*t.encode("  ab") == Ids{259, 259, 264});
  CHECK(*t.encode("a\xc3\xa9\n") == Ids{259, 260, 0xc3 + 3, 0xa9 + 3, '\n' + 3});
  CHECK(*t.encode(std::string("\xff\x00", 2)) == Ids{259, 0xff + 3, 3});  // bytes that are not a character
  CHECK(*t.encode("") == Ids{});
  CHECK(*t.encode("ab</s>ab", {.special = true}) == Ids{264, 2, 264});  // a blank in front of each piece
  CHECK(*t.encode("ab", {.before = true}) == Ids{1, 264});
  CHECK(*t.encode("ab", {.before = true, .behind = true}) == Ids{1, 264, 2});
  CHECK(*t.encode("ab", {.continued = true}) == Ids{263});
  CHECK(*t.decode(Ids{264, 264}) == "ab ab");
  CHECK(*t.decode(Ids{264, 264}, true) == " ab ab");
  CHECK(*t.decode(Ids{1, 264}) == "<s> ab");
  CHECK(*t.decode(Ids{0xc3 + 3}) == "\xc3");  // the start of a character
  CHECK(*t.id_of(mark + "ab") == 264);
}

TEST_CASE("Metaspace puts its mark in front always, at the text's begin, or never", "[unit][data]") {
  const auto ids = [](const char* scheme, bool split, const char* text) {
    auto t = made({.pre = metaspace(scheme, split), .decoder = metaspace(scheme)});
    return *t.encode(text, {.special = true});
  };
  CHECK(ids("always", true, "ab<s>ab ab") == Ids{264, 1, 264, 264});
  CHECK(ids("first", true, "ab<s>ab ab") == Ids{264, 1, 263, 264});
  CHECK(ids("first", false, "ab<s>ab ab") == Ids{264, 1, 263, 264});
  CHECK(ids("never", true, "ab<s>ab ab") == Ids{263, 1, 263, 264});
  CHECK(ids("always", true, " ab") == Ids{264});  // already there
  auto t = made({.pre = metaspace("always"), .decoder = metaspace("always")});
  CHECK(*t.decode(Ids{264, 264}) == "ab ab");
  CHECK(*t.decode(Ids{264, 264}, true) == " ab ab");
}

TEST_CASE("characters that are no token: one unknown token, one each, or left out", "[unit][data]") {
  CHECK(*made({.bytes = false, .pre = metaspace("never")}).encode("xyab x") == Ids{0, 263, 259, 0});
  CHECK(*made({.bytes = false, .fuse = false, .pre = metaspace("never")}).encode("xyab x") == Ids{0, 0, 263, 259, 0});
  CHECK(*made({.bytes = false, .unknown = "", .pre = metaspace("never")}).encode("xyab x") == Ids{263, 259});
  const auto none = Tokenizer::from_tokenizer_json(file({.unknown = "<none>"}), "t.json");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "t.json: the unknown token '<none>' is not in the vocabulary");
}

TEST_CASE("a text without a pre-tokenizer is one word, and takes no longer than its length", "[unit][data]") {
  for (const bool over_blanks : {false, true}) {
    auto t = made({.over_blanks = over_blanks, .normalizer = prepend, .decoder = strip});
    CHECK(*t.encode("ab ab") == (over_blanks ? Ids{259, 260, 265, 263} : Ids{264, 264}));
    std::string text;
    for (int i = 0; i < 400'000; ++i) text += "abc ab"[i * 7 % 6];
    const auto ids = t.encode(text);
    REQUIRE(ids.ok());
    CHECK(*t.decode(*ids) == text);
  }
}

TEST_CASE("a text may be cut at the ends of lines where no merge reaches over them", "[unit][data]") {
  auto t = made({.normalizer = prepend, .decoder = strip});
  CHECK(t.lines_apart());
  Ids whole = *t.encode("ab a\nab"), parts = *t.encode("ab a\n");
  const Ids rest = *t.encode("ab", {.continued = true});
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK(whole == parts);
  // An unknown line end is held back until the next character.
  CHECK_FALSE(made({.bytes = false, .normalizer = prepend}).lines_apart());
  const Value lines = json(R"({"type":"Replace","pattern":{"Regex":"\\n+"},"content":"a"})");
  CHECK_FALSE(made({.normalizer = lines}).lines_apart());
}

TEST_CASE("steps that are not known are refused by name", "[unit][data]") {
  const auto error = [](const Shape& s) {
    auto t = Tokenizer::from_tokenizer_json(file(s), "t.json");
    return t.ok() ? "opened" : t.error().message + "; " + t.error().hint;
  };
  CHECK(error({.normalizer = json(R"({"type":"Lowercase"})")}) ==
        "t.json: a normalizer of type Lowercase is not supported; Sequence, Prepend, Replace and NFC are known");
  CHECK(error({.pre = json(R"({"type":"Whitespace"})")}).find("a pre_tokenizer of type Whitespace") == 8);
  CHECK(error({.decoder = json(R"({"type":"WordPiece"})")}).find("a decoder of type WordPiece") == 8);
  CHECK(error({.pre = metaspace("sometimes")}).find("a step of the tokenizer is incomplete") == 8);
  CHECK(error({.normalizer = json(R"({"type":"Replace","pattern":{"String":""}})")})
            .find("a step of the tokenizer is incomplete") == 8);
  auto pattern = Tokenizer::from_tokenizer_json(file({}), "t.json", "gpt2");
  REQUIRE_FALSE(pattern.ok());
  CHECK(pattern.error().message == "t.json: the file has its own pattern, so the option `pattern` cannot be given");
}

TEST_CASE("tokens that begin with '$' are themselves", "[unit][data]") {
  Value whole = json(file({.pre = metaspace("never")})), model = whole["model"], vocab = model["vocab"];
  vocab.set("$", 270).set("$$", 271).set("$$$", 272);
  std::string text = whole.set("model", model.set("vocab", vocab)).to_json();
  for (std::size_t at; (at = text.find("\"$$")) != text.npos;) text.replace(at, 3, "\"\\u0024");  // the usual form
  auto t = Tokenizer::from_tokenizer_json(text, "t.json");
  REQUIRE(t.ok());
  CHECK(*t->encode("$") == Ids{270});
  CHECK(*t->id_of("$$") == 271);
  CHECK(*t->id_of("$$$") == 272);
}

}  // namespace rille::data
