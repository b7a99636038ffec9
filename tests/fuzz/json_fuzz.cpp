// JSON from anywhere: any text is read or refused as invalid, however it nests and whatever its numbers are; what is
// read is written, and read again as the same.
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/value.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;

namespace {

void check_again(const Result<Value>& read, Result<Value> (*parse)(std::string_view),
                 std::string (*write)(const Value&)) {
  if (!read) {
    fuzz_check(read.error().kind == ErrorKind::invalid, "a refusal is an invalid error");
    return;
  }
  const std::string written = write(*read);
  const Result<Value> again = parse(written);
  fuzz_check(again.ok() && write(*again) == written, "what is written is read as the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_again(
      Value::from_json(text), [](std::string_view t) { return Value::from_json(t); },
      [](const Value& v) { return v.to_json(); });
  const Result<Value> plain = plain_json(text);
  if (plain) fuzz_check(plain_json(to_plain_json(*plain)).ok(), "what is written plainly is read");
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"a":[1,2.5,-3e-7,true,false,null,"text"],"b":{"c":{"d":"\u00e9\n"}},"$num":"nan"})",
          R"([{"$bytes":"AAEC"},{"$map":[[1,2],["x",true]]},{"$$x":1},{"$num":"-inf"}])",
          // the inputs that ended a process that reads numbers as Debian's RapidJSON 1.1.0 does (its issue 1251)
          "[128.74836467836484838364836483643636483648e-336]", "[0.000000000000001e-2147483639]"};
}

std::vector<std::string> fuzz_words() {
  return {"1e308",
          "1e309",
          "-1e-400",
          "0.1e-2147483648",
          "1e99999999999999999999",
          "9007199254740993",
          "18446744073709551616",
          "-0.0",
          "00",
          "1.",
          ".5",
          "+1",
          "NaN",
          "\"$num\":",
          "\"$bytes\":",
          "\"$map\":[[",
          "\\ud800",
          "\\udc00\\ud800",
          "\\u0000",
          "\xc0\x80",
          "\xed\xa0\x80",
          "\xff",
          "\xef\xbb\xbf",
          std::string(200, '['),
          std::string(130, '{'),
          std::string(400, '9'),
          "]",
          "}",
          ",",
          ":"};
}
