#include "runtime/core/store/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/store/limited_child.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;

namespace {

// A file made of a header and a number of data bytes.
std::string file_of(std::string_view header, std::size_t data_bytes) {
  std::uint64_t n = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out + std::string(header) + std::string(data_bytes, 'd');
}

std::string fault(std::string_view header, std::size_t data_bytes) {
  auto parsed = parse_safetensors(file_of(header, data_bytes), "x.safetensors");
  if (parsed) return "";
  CHECK(parsed.error().kind == ErrorKind::integrity);
  CHECK(parsed.error().message.find("x.safetensors") != std::string::npos);
  return parsed.error().message;
}

bool refused(std::string_view header, std::size_t data_bytes, std::string_view naming) {
  std::string text = fault(header, data_bytes);
  INFO(text);
  CHECK(text.find(naming) != std::string::npos);
  return !text.empty();
}

}  // namespace

TEST_CASE("what is written is read back, aligned and sorted") {
  TempDir dir;
  float w[6] = {1, 2, 3, 4, 5, 6};
  std::uint8_t mask[3] = {7, 8, 9};
  std::int64_t step = 42;
  std::uint64_t asked = 0;
  std::vector<TensorSource> tensors = {
      {"mask", "U8", {3}, mask},
      {"weight",
       "F32",
       {2, 3},
       nullptr,
       [&](std::uint64_t offset, char* out, std::size_t size) {
         asked += size;
         std::memcpy(out, reinterpret_cast<char*>(w) + offset, size);
         return success();
       }},
      {"bias \"quoted\"", "F32", {1}, w},
      {"step", "I64", {}, &step},
      {"none", "BF16", {0, 5}},
  };
  auto print = write_safetensors(dir.file("m.safetensors"), tensors, {{"format", "rille"}}, true);
  REQUIRE(print.ok());
  CHECK(asked == 24);
  CHECK(*print == fingerprint_file(dir.file("m.safetensors"), true).value());
  auto file = SafetensorsFile::open(dir.file("m.safetensors"));
  REQUIRE(file.ok());
  std::vector<std::string> order;
  for (const TensorEntry& t : file->tensors()) order.push_back(t.name);
  CHECK(order == std::vector<std::string>{"step", "bias \"quoted\"", "weight", "none", "mask"});
  CHECK(file->metadata().at("format") == "rille");
  REQUIRE(file->find("weight"));
  CHECK(file->find("weight")->shape == std::vector<std::int64_t>{2, 3});
  CHECK(std::memcmp(file->bytes(*file->find("weight")).data(), w, 24) == 0);
  CHECK(file->bytes(*file->find("none")).empty());
  CHECK(file->bytes(*file->find("step")).size() == 8);
  CHECK(file->find("absent") == nullptr);
  CHECK((file->bytes(*file->find("step")).data() - file->file_bytes().data()) % 4096 == 0);
}

TEST_CASE("an empty list is a legal file") {
  TempDir dir;
  REQUIRE(write_safetensors(dir.file("e"), {}).ok());
  CHECK(SafetensorsFile::open(dir.file("e")).value().tensors().empty());
}

TEST_CASE("the writer refuses what the format forbids") {
  TempDir dir;
  float x[4] = {};
  auto kind = [&](std::vector<TensorSource> tensors) {
    auto written = write_safetensors(dir.file("m"), tensors);
    REQUIRE(!written.ok());
    CHECK(written.error().message.find(tensors.back().name) != std::string::npos);
    return written.error().kind;
  };
  CHECK(kind({{"a", "F99", {1}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"a", "F32", {-1}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"a", "F32", {1}, x}, {"a", "F32", {1}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"__metadata__", "F32", {1}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"a", "F4", {3}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"a", "F32", {1ll << 40, 1ll << 40}, x}}) == ErrorKind::invalid);
  CHECK(kind({{"a", "F32", {1}}}) == ErrorKind::invalid);
  CHECK(dir.entries() == 0);
}

TEST_CASE("a source that fails and a disk that fills leave nothing") {
  TempDir dir;
  TensorSource failing{"a", "U8", {8}, nullptr, [](std::uint64_t, char*, std::size_t) -> Result<> {
                         return make_error(ErrorKind::device, "copy failed");
                       }};
  CHECK(write_safetensors(dir.file("m"), {failing}).error().kind == ErrorKind::device);
  std::string big(200'000, 'x');
  int code = in_child_with_file_limit(100'000, [&] {
    auto written = write_safetensors(dir.file("m"), {{"a", "U8", {200'000}, big.data()}});
    return !written.ok() && written.error().kind == ErrorKind::io ? 7 : 1;
  });
  CHECK(code == 7);
  CHECK(dir.entries() == 0);
}

TEST_CASE("valid headers written by other programs are read") {
  CHECK(fault(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2) == "");
  CHECK(fault(R"({"a":{"data_offsets":[0,2],"shape":[1,2],"dtype":"I8"}}   )", 2) == "");
  CHECK(fault(R"({"b":{"dtype":"F4","shape":[2],"data_offsets":[4,5]},)"
              R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
              5) == "");
  CHECK(fault(R"({"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},"__metadata__":{}})", 0) == "");
  CHECK(fault("{}", 0) == "");
}

TEST_CASE("every fault is an integrity error that names it") {
  CHECK(parse_safetensors("1234567", "x").error().message.find("7 bytes") != std::string::npos);
  std::string huge = file_of("{}", 0);
  huge[7] = 1;
  CHECK(parse_safetensors(huge, "x").error().message.find("above the limit") != std::string::npos);
  std::string torn = file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 0).substr(0, 30);
  CHECK(parse_safetensors(torn, "x").error().message.find("the file has 30") != std::string::npos);
  CHECK(refused("", 0, "begin with '{'"));
  CHECK(refused(" {}", 0, "begin with '{'"));
  CHECK(refused("{\"a\xff\":1}", 0, "UTF-8"));
  CHECK(refused("{", 0, "header byte"));
  CHECK(refused("{}x", 0, "header byte"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "1 bytes of data"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3, "3 bytes of data"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "'a' spans bytes 1 to 3"));
  CHECK(refused(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
      "'b' spans"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1, "its shape needs 2"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 2, "'a'"));
  CHECK(refused(R"({"a":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", 2, "U9"));
  CHECK(refused(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "whole bytes"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", 2, "negative"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", 2, "type"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,16],"data_offsets":[0,2]}})", 2, "2^64"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2]}})", 2, "2^63"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2,3]}})", 2, "two data_offsets"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0]}})", 2, "data_offsets"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2]}})", 2, "members"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}})", 2, "type"));
  CHECK(refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2, "a duplicate key"));
  CHECK(refused(
      R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0,
      "a duplicate key"));
  CHECK(refused(R"({"__metadata__":{"a":1}})", 0, "type"));
  CHECK(refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "a duplicate key"));
  CHECK(refused(R"({"__metadata__":{"a":{"b":"c"}}})", 0, "type"));
  CHECK(refused(R"({"a":[]})", 0, "type"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[[2]],"data_offsets":[0,2]}})", 2, "type"));
  CHECK(refused("{\"a\":" + std::string(100'000, '['), 0, "type"));
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[0.000000000000001e-2147483639],"data_offsets":[0,2]}})", 2, "type"));
}
