// A header that is accepted describes tensors that lie in the file, side by side, each as long as its shape
// says.
#include <cstring>

#include "runtime/core/store/safetensors.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille::store;

namespace {

void check(std::string_view file) {
  auto parsed = parse_safetensors(file, "input");
  if (!parsed) {
    fuzz_check(parsed.error().kind == rille::ErrorKind::integrity, "a refusal is an integrity error");
    fuzz_check(!parsed.error().message.empty(), "a refusal says why");
    return;
  }
  std::uint64_t at = 0;
  for (const TensorEntry& t : parsed->tensors) {
    fuzz_check(t.begin == at && t.end >= t.begin, "tensors tile the data");
    fuzz_check(tensor_bytes(t.dtype, t.shape).value() == t.end - t.begin, "a tensor is as long as its shape says");
    at = t.end;
  }
  fuzz_check(parsed->data_offset + at == file.size(), "the data fills the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  check(file);
  // Nearly every change makes the length word wrong: set it right, so that the changes reach the parser.
  std::size_t end = file.rfind('}');
  if (size < 9 || end == std::string::npos || end < 8) return 0;
  std::uint64_t length = end + 1 - 8;
  std::memcpy(file.data(), &length, 8);
  check(file);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  auto add = [&](std::string header, std::size_t data_bytes) {
    std::uint64_t n = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &n, 8);
    seeds.push_back(file + header + std::string(data_bytes, 'd'));
  };
  add(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[24,28]}}   )",
      28);
  add(R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("e":{"dtype":"BF16","shape":[0,9],"data_offsets":[8,8]}})",
      8);
  add(R"({"q":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2);
  add("{}", 0);
  return seeds;
}

std::vector<std::string> fuzz_words() {
  return {"\"dtype\"",
          "\"shape\"",
          "\"data_offsets\"",
          "__metadata__",
          "F32",
          "[",
          "]",
          "{",
          "}",
          ":",
          ",",
          "\"",
          "0",
          "-1",
          "18446744073709551615",
          "9223372036854775808",
          "1e9",
          "null",
          "\\u0000",
          "\\ud800",
          "\xff",
          "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},",
          std::string(300, '[')};
}
