// A tokenizer.json that is accepted encodes any bytes into ids that it can decode; others are refused with a reason.
#include "runtime/compute/data/tokenizer.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using data::Tokenizer;

namespace {

void check(Tokenizer& t, const std::string& text) {
  for (const bool on : {false, true}) {
    const data::Encoding how{.special = on, .before = on, .behind = on, .continued = !on};
    const auto ids = t.encode(text, how);
    if (!ids) {
      fuzz_check(ids.error().kind == ErrorKind::invalid, "only a pattern gives up");
      continue;
    }
    const auto again = t.encode(text, how);
    fuzz_check(again.ok() && *again == *ids, "what is remembered gives the same ids");
    for (const std::int32_t id : *ids) fuzz_check(id >= 0 && id < t.size(), "an id is one of the vocabulary");
    const auto decoded = t.decode(*ids, on);
    fuzz_check(decoded.ok() || decoded.error().kind == ErrorKind::invalid, "ids are decoded");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto t = Tokenizer::from_tokenizer_json(text, "input");
  if (!t) {
    fuzz_check(!t.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const char* one : {"", "ab abc  ab\n<s>a</s> <t> ab", "\xff\xe2\x96\x81 a\xe4\xb8\xad\x00z"}) check(*t, one);
  check(*t, text.substr(0, 200));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string bytes;
  for (int b = 0; b < 256; ++b) {
    char token[32];
    std::snprintf(token, sizeof token, "\"<0x%02X>\":%d,", b, b + 3);
    bytes += token;
  }
  const std::string vocab = R"("<unk>":0,"<s>":1,"</s>":2,)";
  const std::string letters = R"("a":300,"b":301,"c":302,"▁":303,"ab":304,"▁ab":305,"abc":306,"▁▁":307},)"
                              R"("merges":[["a","b"],["▁","ab"],"ab c",["▁","▁"]]},)";
  const std::string model = R"({"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":)";
  const std::string added =
      R"("added_tokens":[{"id":1,"content":"<s>","special":true},{"id":308,"content":"<t>","lstrip":true,)"
      R"("rstrip":true,"normalized":true},{"id":304,"content":"ab","single_word":true}],)";
  const std::string decoder =
      R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
      R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)";
  const std::string tail = R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
                           R"({"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"id":"<s>","ids":[1]}}}})";
  return {model + "true,\"vocab\":{" + vocab + bytes + letters + added + decoder +
              R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace",)"
              R"("pattern":{"String":" "},"content":"▁"}]},)" +
              tail,
          model + "false,\"vocab\":{" + vocab + letters + added +
              R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},)"
              R"("decoder":{"type":"Metaspace","replacement":"▁","add_prefix_space":true},)" +
              tail,
          model + "false,\"ignore_merges\":true,\"vocab\":{" + vocab + letters + added + decoder +
              R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a+"},)"
              R"("behavior":"MergedWithNext"},{"type":"Digits"},{"type":"Metaspace","split":false}]},)" +
              tail};
}

std::vector<std::string> fuzz_words() {
  return {"{\"type\":",
          "\"Replace\"",
          "\"Split\"",
          "\"Isolated\"",
          "\"Removed\"",
          "\"Contiguous\"",
          "\"invert\":true,",
          "\"MergedWithPrevious\"",
          "\"Regex\"",
          "\"String\"",
          "▁",
          "<0x41>",
          "null",
          "true",
          "false",
          "1e308",
          "-1",
          "[",
          "]",
          "{",
          "}",
          ",",
          ":",
          "\"\"",
          "\"\\\\s*\"",
          "\"merges\":[],",
          "\"never\"",
          "16777215",
          "\"ids\":[9]"};
}
