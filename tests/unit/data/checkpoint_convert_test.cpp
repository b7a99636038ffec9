#include "runtime/compute/data/checkpoint_convert.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/compute/data/checkpoint_parts.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::data;

namespace {

struct Written {  // a file of a checkpoint with tensors of bytes
  CheckpointFile file;
  std::vector<std::pair<std::string, std::string>> tensors;
  std::int64_t columns = 1;
};

Checkpoint save(const CheckpointStore& store, std::int64_t step, const std::vector<Written>& files) {
  CheckpointWriter writer = store.begin(step).value();
  for (const Written& one : files) {
    std::vector<store::TensorSource> sources;
    for (const auto& [name, bytes] : one.tensors)
      sources.push_back(
          {name, "U8", {static_cast<std::int64_t>(bytes.size()) / one.columns, one.columns}, bytes.data(), {}});
    CheckpointFile file = one.file;
    file.fingerprint = store::write_safetensors(writer.directory() + "/" + file.name, sources).value();
    REQUIRE(writer.add(file).ok());
  }
  return writer.publish({}).value();
}

CheckpointFile named(const std::string& name, const std::string& part = "") {
  CheckpointFile out;
  out.name = name;
  out.part = part;
  return out;
}

std::string bytes_of(const StateTensor& tensor) {
  std::string out;
  for (const StateTensor::Piece& piece : tensor.pieces) out += piece.bytes();
  return out;
}

std::map<std::string, std::string> read(const std::string& path) {
  const store::SafetensorsFile file = store::SafetensorsFile::open(path).value();
  CHECK(file.metadata().at("format") == "pt");
  std::map<std::string, std::string> out;
  for (const store::TensorEntry& entry : file.tensors()) out[entry.name] = file.bytes(entry);
  return out;
}

}  // namespace

TEST_CASE("a checkpoint's parts are joined of the files that have them") {
  TempDir dir;
  const CheckpointStore store(dir.path);
  CheckpointFile first = named("model.rank-0-of-2.safetensors", "model"),
                 second = named("model.rank-1-of-2.safetensors", "model"),
                 old = named("model.step-00000001.safetensors", "model");
  first.slices["w"] = {0, 5};
  second.slices["w"] = {3, 5};
  old.counts = {"frozen"};
  const Checkpoint made = save(store, 2,
                               {{second, {{"w", "ghij"}}, 2},
                                {first, {{"w", "abcdef"}, {"b", "xy"}}, 2},
                                {old, {{"w", "oldoldoldo"}, {"frozen", "ice!"}}, 2},
                                {named("opt.safetensors"), {{"m", "mm"}}}});
  const Checkpoint loaded = store.load(2).value();
  CHECK(loaded.manifest.to_json() == made.manifest.to_json());
  CHECK(loaded.manifest.to_json().find("\"version\": 2") != std::string::npos);
  auto parts = open_parts(loaded).value();
  REQUIRE(parts.size() == 2);
  CHECK(parts["model"].size() == 3);
  CHECK(bytes_of(parts["model"].at("w")) == "abcdefghij");
  CHECK(parts["model"].at("w").shape == std::vector<std::int64_t>{5, 2});
  CHECK(bytes_of(parts["model"].at("frozen")) == "ice!");
  CHECK(bytes_of(parts["opt"].at("m")) == "mm");
}

TEST_CASE("files that are not whole tensors together are refused") {
  TempDir dir;
  const CheckpointStore store(dir.path);
  CheckpointFile first = named("a.safetensors", "model"), second = named("b.safetensors", "model");
  first.slices["w"] = {0, 4};
  std::string naming = "row 2 of 'w' is missing";
  std::vector<std::pair<std::string, std::string>> tensors = {{"w", "cd"}};
  SECTION("a gap") { second.slices["w"] = {3, 4}; }
  SECTION("an overlap") {
    second.slices["w"] = {1, 4};
    naming = "row 1 of 'w' is missing, or in two files";
  }
  SECTION("too few rows") {
    second.slices["w"] = {2, 5};
    first.slices["w"] = {0, 5};
    naming = "'w' has 4 of 5 rows";
  }
  SECTION("other sizes") {
    second.slices["w"] = {2, 5};
    naming = "'w' is in two files";
  }
  SECTION("a whole one and a slice") { naming = "'w' is in two files"; }
  SECTION("one that counts and is not there") {
    second.slices["w"] = {2, 4};
    second.counts = {"w", "x"};
    naming = "'x' is not in 'b.safetensors'";
  }
  save(store, 1, {{first, {{"w", "ab"}}}, {second, tensors}});
  const auto parts = open_parts(store.load(1).value());
  REQUIRE(!parts.ok());
  CHECK(parts.error().kind == ErrorKind::integrity);
  INFO(parts.error().message);
  CHECK(parts.error().message.find(naming) != std::string::npos);
}

TEST_CASE("a checkpoint is converted to one file, or to the hub's folder") {
  TempDir dir;
  const CheckpointStore store(dir.file("ck"));
  CheckpointFile first = named("model.rank-0-of-2.safetensors", "model"),
                 second = named("model.rank-1-of-2.safetensors", "model");
  first.slices["w"] = {0, 4};
  second.slices["w"] = {2, 4};
  const Checkpoint made = save(store, 1,
                               {{first, {{"w", "ab"}, {"b", "12345678"}}},
                                {second, {{"w", "cd"}}},
                                {named("optimizer.safetensors"), {{"m.w", "opt."}}}});
  const std::map<std::string, std::string> all = {{"w", "abcd"}, {"b", "12345678"}, {"optimizer.m.w", "opt."}};
  const Converted one = convert_checkpoint(made, dir.file("all.safetensors")).value();
  CHECK(one.tensors == 3);
  CHECK(one.files == 1);
  CHECK(read(dir.file("all.safetensors")) == all);

  REQUIRE(store::make_directories(dir.file("empty")).ok());
  for (const char* to : {"new/folder/", "empty"}) {
    const Converted several = convert_checkpoint(made, dir.file(to), 10).value();
    CHECK(several.files == 2);
    const Value index =
        Value::from_json(store::read_file(dir.file(to) + "/model.safetensors.index.json").value()).value();
    CHECK(index["metadata"].integer("total_size") == 16);
    std::map<std::string, std::string> found;
    for (const auto& [name, file] : *index["weight_map"].as_object())
      found[name] = read(dir.file(to) + "/" + *file.as_string()).at(name);
    CHECK(found == all);
    CHECK(index["weight_map"].text("b") == "model-00001-of-00002.safetensors");
  }
  const Error full = convert_checkpoint(made, dir.file("empty")).error();
  CHECK(full.kind == ErrorKind::invalid);
  CHECK(full.message.find("not empty") != std::string::npos);
}

TEST_CASE("two tensors of one name are not converted") {
  TempDir dir;
  const CheckpointStore store(dir.file("ck"));
  const Checkpoint made =
      save(store, 1, {{named("model.safetensors"), {{"head.w", "a"}}}, {named("head.safetensors"), {{"w", "b"}}}});
  const Error e = convert_checkpoint(made, dir.file("x.safetensors")).error();
  CHECK(e.kind == ErrorKind::invalid);
  CHECK(e.message.find("'head.w' would be there twice") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(dir.file("x.safetensors")));
}
