// Byte-pair encoding with small vocabularies; tests/bench/tokenizer_peer.py compares with other tokenizers on large
// ones.
#include "runtime/compute/data/tokenizer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {
namespace {

// The 256 bytes in the letters of GPT-2's files, then merged tokens.
std::string letter(int byte) {
  static const std::vector<std::string> letters = [] {
    std::vector<std::string> out;
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const int code = itself ? b : next++;
      out.push_back(code < 128 ? std::string(1, char(code))
                               : std::string{char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))});
    }
    return out;
  }();
  return letters[std::size_t(byte)];
}

Value vocabulary(const std::vector<std::pair<std::string, std::string>>& merges) {
  Value vocab{Value::Object{}};
  for (int b = 0; b < 256; ++b) vocab.set(letter(b), b);
  int id = 256;
  for (const auto& [a, b] : merges) vocab.set(a + b, id++);
  return vocab;
}

// In the usual notation: our own JSON adds a '$' to keys that begin with one.
std::string plain_json(const Value& value) {
  std::string text = value.to_json();
  for (std::size_t at; (at = text.find("\"$$\"")) != text.npos;) text.erase(at + 1, 1);
  return text;
}

const std::vector<std::pair<std::string, std::string>> merges{{"l", "l"},    {"h", "e"},         {"he", "ll"},
                                                              {"hell", "o"}, {letter(' '), "w"}, {"o", "r"}};

Tokenizer gpt2() {
  std::string lines = "#version: 0.2\n";
  for (const auto& [a, b] : merges) lines += a + " " + b + "\n";
  auto t = Tokenizer::from_gpt2(plain_json(vocabulary(merges)), lines, "here");
  REQUIRE(t.ok());
  return std::move(*t);
}

std::string tokenizer_json(const std::string& type = "ByteLevel") {
  Value list{Value::Array{}};
  for (const auto& [a, b] : merges) list.as_array()->push_back(a + " " + b);
  Value model, pre, end, plain, added{Value::Array{}}, file;
  model.set("type", "BPE").set("vocab", vocabulary(merges)).set("merges", list);
  pre.set("type", type);
  end.set("id", 300).set("content", "<|end|>").set("special", true);
  plain.set("id", 301).set("content", "<tool>").set("special", false);
  added.as_array()->push_back(end);
  added.as_array()->push_back(plain);
  file.set("model", model).set("pre_tokenizer", pre).set("added_tokens", added);
  return plain_json(file);
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("the pair of the lowest rank is joined first, and words stay apart", "[unit][data]") {
  auto t = gpt2();
  CHECK(*t.encode("hello") == Ids{259});
  CHECK(*t.encode("hello world") == Ids{259, 260, 261, 'l', 'd'});  // " w" "or" "l" "d"
  CHECK(*t.encode("") == Ids{});
  CHECK(*t.encode("lll") == Ids{256, 'l'});
  CHECK(*t.encode(std::string("\xff\x00z", 3)) == Ids{255, 0, 'z'});
  CHECK(t.size() == 262);
  CHECK(*t.id_of("hell") == 258);
  CHECK_FALSE(t.id_of("none"));
  CHECK(*t.decode(Ids{259, 260, 261, 'l', 'd'}) == "hello world");
  auto none = t.decode(Ids{1, 262});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "there is no token 262; this vocabulary has 262 ids");
  CHECK_FALSE(t.decode(Ids{-1}).ok());
}

TEST_CASE("special tokens are text unless they are asked for", "[unit][data]") {
  auto t = Tokenizer::from_tokenizer_json(tokenizer_json(), "t.json");
  REQUIRE(t.ok());
  CHECK(*t->encode("hello<|end|>hello", {.special = true}) == Ids{259, 300, 259});
  CHECK(t->encode("<|end|>")->size() == 7);
  CHECK(*t->encode("<tool>hello<tool>") == Ids{301, 259, 301});  // added, not special: always matched
  CHECK(*t->decode(Ids{300, 301}) == "<|end|><tool>");
  CHECK(t->special() == std::vector<std::string>{"<|end|>"});
  CHECK(*t->id_of("<|end|>") == 300);
}

TEST_CASE("tiktoken's files join by rank, and need a pattern", "[unit][data]") {
  std::string text;
  for (int b = 0; b < 256; ++b) text += fmt::format("{} {}\n", to_base64(std::string(1, char(b))), b);
  text += to_base64("ab") + " 256\n" + to_base64("abc") + " 257\n" + to_base64("bc") + " 258\n";
  auto t = Tokenizer::from_tiktoken(text, "v.tiktoken", "gpt2");
  REQUIRE(t.ok());
  CHECK(*t->encode("abc") == Ids{257});
  CHECK(*t->encode("bcab") == Ids{258, 256});
  auto no_pattern = Tokenizer::from_tiktoken(text, "v.tiktoken", "");
  REQUIRE_FALSE(no_pattern.ok());
  CHECK(no_pattern.error().hint.find("cl100k") != std::string::npos);
  CHECK_FALSE(Tokenizer::from_tiktoken(text, "v.tiktoken", "(unclosed").ok());
  CHECK(Tokenizer::from_tiktoken(text + "??? 5\n", "v", "gpt2").error().message ==
        "v: line 260: not a token in base64 "
        "and its rank");
  CHECK_FALSE(Tokenizer::from_tiktoken(to_base64("a") + " 99999999999\n", "v", "gpt2").ok());
}

TEST_CASE("a long word takes no longer than its length", "[unit][data]") {
  auto t = gpt2();
  std::string word;
  for (int i = 0; i < 300'000; ++i) word += "hel"[i % 3];
  CHECK(*t.decode(*t.encode(word)) == word);
}

TEST_CASE("what is damaged or of another kind is named", "[unit][data]") {
  const auto error = [](Result<Tokenizer> r) { return r.ok() ? "opened" : r.error().message; };
  CHECK(error(Tokenizer::from_tokenizer_json("{", "t.json")).find("t.json") == 0);
  CHECK(error(Tokenizer::from_tokenizer_json("{}", "t.json")) == "t.json: model.vocab or model.merges is missing");
  CHECK(error(Tokenizer::from_tokenizer_json(tokenizer_json("BertPreTokenizer"), "t.json")) ==
        "t.json: a pre_tokenizer of type BertPreTokenizer is not supported");
  CHECK(error(Tokenizer::from_tokenizer_json(R"({"model":{"type":"Unigram"}})", "t.json")) ==
        "t.json: a tokenizer of type Unigram is not supported");
  CHECK(error(Tokenizer::from_gpt2("{\"a\": 0}", "", "here")).find("there is no token for the byte 0") !=
        std::string::npos);
  CHECK(error(Tokenizer::from_gpt2(plain_json(vocabulary(merges)), "q q\n", "here")) ==
        "here/merges.txt: the merge 'q q' has unknown tokens");
  CHECK(error(Tokenizer::open("/nowhere/tokenizer.json")).find("/nowhere") != std::string::npos);
  CHECK(error(Tokenizer::open("/")).find("neither tokenizer.json") != std::string::npos);
}

TEST_CASE("damaged files are refused or read, never crashed on", "[unit][data]") {
  const std::string good = tokenizer_json();
  std::mt19937 random(1);
  int opened = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = good;
    for (int k = 0; k < 1 + i % 4; ++k) {
      const std::size_t at = random() % text.size();
      if (i % 3 == 0) text.resize(at + 1);
      else text[at] = "0-9\"{}[],: <e"[random() % 13];
    }
    auto t = Tokenizer::from_tokenizer_json(text, "t.json");
    if (!t) continue;
    ++opened;
    auto ids = t->encode("hello <|end|> world\n\xff", {.special = true});
    if (ids) (void)t->decode(*ids);
  }
  CHECK(opened > 0);
}

TEST_CASE("an encoding can be ended, and long words need room", "[unit][data]") {
  auto t = Tokenizer::from_tokenizer_json(tokenizer_json(), "t.json").value();
  struct Ended {};
  int looks = 0;
  const Asked ends{[&] {
                     if (++looks == 100) throw Ended();
                   },
                   {},
                   {}};
  std::string words, word(1 << 20, 'x');
  for (int i = 0; i < 1000; ++i) words += "hello ";
  CHECK_THROWS_AS(t.encode(words, {.asked = ends}), Ended);
  looks = 80;
  CHECK_THROWS_AS(t.encode(word, {.asked = ends}), Ended);
  std::int64_t most = 0;
  const Asked full{
      {}, [&](std::int64_t bytes) -> Result<> { return most = bytes, make_error(ErrorKind::memory, "full"); }, {}};
  CHECK(t.encode(word, {.asked = full}).error().message == "full");
  CHECK(most > 1 << 20);
  CHECK(t.decode(Ids(1000, 0), false, full).error().message == "full");
  CHECK(t.encode(words).ok());
}

TEST_CASE("a pattern that matches seldom is tried piece by piece, with the same result", "[unit][data]") {
  auto t = Tokenizer::from_tokenizer_json(tokenizer_json(), "t.json", "l|ä+é").value();
  for (const int gap : {1, 62, 63, 64, 65, 127, 128, 1000}) {
    for (const std::string& filler : {"x", "ü", "\x80"}) {
      std::string text;
      for (int i = 0; i < gap; ++i) text += filler;
      const std::string whole = text + "ll" + text + "ääé" + text;
      auto ids = t.encode(whole);
      REQUIRE(ids.ok());
      CHECK(t.decode(*ids).value() == whole);
      CHECK(std::count(ids->begin(), ids->end(), t.id_of("ll").value()) == 0);  // each l is a word of its own
    }
  }
}

TEST_CASE("a short file makes no long vocabulary, and its steps no long text", "[unit][data]") {
  std::string lines;
  for (int b = 0; b < 256; ++b) lines += to_base64(std::string(1, char(b))) + fmt::format(" {}\n", b);
  CHECK(Tokenizer::from_tiktoken(lines, "t", "gpt2").ok());
  CHECK(Tokenizer::from_tiktoken(lines + "QUFB 16777215\n", "t", "gpt2").error().kind == ErrorKind::integrity);
  const std::string twice = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"},)";
  std::string steps;
  for (int i = 0; i < 40; ++i) steps += twice;
  const std::string model = R"({"model":{"type":"BPE","unk_token":"!","vocab":{"!":0,"a":1},"merges":[]},)";
  auto made = Tokenizer::from_tokenizer_json(
      model + R"("normalizer":{"type":"Sequence","normalizers":[)" + steps.substr(0, steps.size() - 1) + "]}}", "t");
  REQUIRE(made.ok());
  CHECK(made->encode("a").error().message.find("eight times") != std::string::npos);
}

TEST_CASE("a directory as models come with it", "[unit][data]") {
  const std::string place = std::filesystem::temp_directory_path();
  const std::string root = place + fmt::format("/rille-tokens-{}", ::getpid());
  std::filesystem::create_directories(root);
  std::ofstream(root + "/vocab.json") << plain_json(vocabulary(merges));
  CHECK_FALSE(Tokenizer::open(root).ok());
  std::ofstream(root + "/merges.txt") << "l l\r\nh e\r\n";
  CHECK(*Tokenizer::open(root)->encode("hell") == Ids{257, 256});
  std::ofstream(root + "/tokenizer.json") << tokenizer_json();
  CHECK(*Tokenizer::open(root)->encode("hello") == Ids{259});
  std::filesystem::remove_all(root);
}

}  // namespace rille::data
