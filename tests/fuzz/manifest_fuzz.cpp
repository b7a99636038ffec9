// A manifest that is accepted names only plain files in its own directory, and says the same again when
// written. The fuzzer cannot guess the digest, so it is made right for every input that is an object: the
// checks behind it are what is tested.
#include "runtime/compute/data/checkpoint.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::data;

namespace {

void check(std::string_view text) {
  auto parsed = Manifest::from_json(text, "input");
  if (!parsed) {
    fuzz_check(parsed.error().kind == ErrorKind::integrity, "a refusal is an integrity error");
    return;
  }
  fuzz_check(parsed->step >= 0, "a step is not negative");
  for (const CheckpointFile& file : parsed->files) {
    fuzz_check(is_checkpoint_file_name(file.name), "a file is plainly named");
    fuzz_check(is_checkpoint_file_name(file.part_name() + ".safetensors"), "its part is plainly named");
    for (const auto& [tensor, slice] : file.slices)
      fuzz_check(slice.first >= 0 && slice.first < slice.of, "a slice begins within its tensor");
    fuzz_check(file.fingerprint.size_bytes >= 0 && file.fingerprint.xxh3.size() == 32, "a file has size and digest");
  }
  auto again = Manifest::from_json(parsed->to_json(), "input");
  fuzz_check(again.ok() && again->to_json() == parsed->to_json(), "what is read is written the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text);
  auto value = Value::from_json(text);
  if (!value || !value->as_object()) return 0;
  value->as_object()->erase("digest");
  value->set("digest", store::fingerprint(value->to_json()).xxh3);
  check(value->to_json());
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  Manifest m;
  m.step = 50, m.generation = 2, m.epoch = 3, m.created_us = 1;
  m.cursor = Value().set("sample", 12);
  m.metadata = Value().set("bytes", "\xff").set("$odd", Value(0.0 / 0.0));
  m.files = {{"model.safetensors", store::fingerprint("abc", true)}, {"opt.safetensors", store::fingerprint("")}};
  const std::string plain = m.to_json();
  m.files[0].part = "model";
  m.files[0].counts = {"w", "b"};
  m.files[0].slices["w"] = {2, 4};
  return {plain, m.to_json(), Manifest{}.to_json()};
}

std::vector<std::string> fuzz_words() {
  return {"\"files\":[]",
          "\"name\":\"../x.safetensors\"",
          "\"step\":-1",
          "\"step\":1e300",
          "\"size_bytes\":",
          "\"part\":\"../m\"",
          "\"counts\":[1]",
          "\"slices\":{\"w\":{\"first\":0,\"of\":1}}",
          "null",
          "{",
          "}",
          "[",
          "]",
          ",",
          "\"$map\":[[1,2]]",
          "{\"$num\":\"inf\"}",
          "{\"$bytes\":\"AA==\"}",
          "9007199254740993",
          "\xff",
          "\\u0000",
          std::string(200, '[')};
}
