#include "runtime/compute/data/checkpoint_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "runtime/compute/data/checkpoint_parts.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::data;

namespace {

using Tensors = std::map<std::string, std::string>;  // values by name, as bytes

constexpr std::size_t much = 40'000, little = 2'000;

std::vector<StateSource> sources_of(const Tensors& tensors) {
  std::vector<StateSource> out;
  for (const auto& [name, bytes] : tensors)
    out.push_back({{name, "U8", {static_cast<std::int64_t>(bytes.size())}, bytes.data(), {}}});
  return out;
}

struct Training {
  TempDir dir;
  CheckpointStore store{dir.file("ck")};

  Checkpoint save(std::int64_t step, const Tensors& model) {
    const std::optional<Checkpoint> before = store.latest().value();
    CheckpointWriter writer = store.begin(step).value();
    REQUIRE(writer.write("model", sources_of(model), before ? &*before : nullptr).ok());
    return writer.publish({}).value();
  }
  Tensors load(std::int64_t step) {
    Tensors out;
    auto parts = open_parts(store.load(step).value()).value();
    for (const auto& [name, tensor] : parts["model"]) out[name] = tensor.pieces.front().bytes();
    return out;
  }
  std::string path(std::int64_t step, const std::string& name = "model.safetensors") {
    return store.root() + "/" + checkpoint_name(step) + "/" + name;
  }
};

ino_t inode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const CheckpointFile& file : checkpoint.manifest.files) out.push_back(file.name);
  return out;
}

void flip(const std::string& path, std::size_t back) {
  std::string bytes = store::read_file(path).value();
  bytes[bytes.size() - back] ^= 1;
  REQUIRE(store::write_file_atomic(path, bytes).ok());
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Training, "tensors that did not change are not written again") {
  Tensors model = {{"frozen", std::string(much, 'f')}, {"w", std::string(much, '1')}};
  CHECK(names(save(10, model)) == Names{"model.safetensors"});
  model["w"] = std::string(much, '2');
  const std::string kept = "model.step-00000010.safetensors";
  const Checkpoint second = save(20, model);
  CHECK(names(second) == Names{kept, "model.safetensors"});
  CHECK(second.manifest.files[0].counts == Names{"frozen"});
  CHECK(inode(path(20, kept)) == inode(path(10)));
  CHECK(std::filesystem::file_size(path(20)) < much + 5000);
  CHECK(load(20) == model);
  model["w"] = std::string(much, '3');
  CHECK(names(save(30, model)) == Names{kept, "model.safetensors"});
  CHECK(store.retain({1, 0}).value() == std::vector<std::int64_t>{10, 20});
  CHECK(load(30) == model);
  CHECK(inode(path(30, kept)) != 0);
}

TEST_CASE_METHOD(Training, "where nothing changed, nothing is written, and files keep their names") {
  const Tensors model = {{"a", std::string(much, 'a')}};
  save(10, model);
  const Checkpoint second = save(20, model);
  CHECK(names(second) == Names{"model.safetensors"});
  CHECK(inode(path(20)) == inode(path(10)));
  CHECK(second.manifest.to_json().find("\"version\": 1") != std::string::npos);
  CHECK(load(20) == model);
}

TEST_CASE_METHOD(Training, "what is a small part of its file is written again") {
  Tensors model = {{"frozen", std::string(much, 'f')}, {"w", std::string(4 * much, '1')}};
  SECTION("less than a quarter") {}
  SECTION("less than a header") { model = {{"frozen", std::string(little, 'f')}, {"w", std::string(little, '1')}}; }
  save(10, model);
  model["w"].back() = '2';
  CHECK(names(save(20, model)) == Names{"model.safetensors"});
  CHECK(inode(path(20)) != inode(path(10)));
  CHECK(load(20) == model);
}

TEST_CASE_METHOD(Training, "a tensor with other sizes, of another type or of other rows is another one") {
  const std::string bytes(much, 'x');
  const auto rows = static_cast<std::int64_t>(much);
  const StateSource whole{{"w", "U8", {rows}, bytes.data(), {}}}, table{{"w", "U8", {rows / 2, 2}, bytes.data(), {}}},
      words{{"w", "F32", {rows / 4}, bytes.data(), {}}}, first{whole.tensor, Slice{0, 2 * rows}},
      second{whole.tensor, Slice{rows, 2 * rows}};
  std::int64_t step = 0;
  const auto write = [&](const StateSource& source) {
    const std::optional<Checkpoint> before = store.latest().value();
    CheckpointWriter writer = store.begin(++step).value();
    REQUIRE(writer.write("model", {source}, before ? &*before : nullptr).ok());
    REQUIRE(writer.publish({}).ok());
    return step > 1 && inode(path(step)) == inode(path(step - 1));
  };
  for (const StateSource& source : {whole, table, words, first, second, whole}) {
    CHECK_FALSE(write(source));
    CHECK(write(source));
  }
}

TEST_CASE_METHOD(Training, "damage is not carried on: what was damaged is written again") {
  Tensors model = {{"a", std::string(much, 'a')}, {"w", std::string(much, '1')}};
  save(10, model);
  model["w"] = std::string(much, '2');
  SECTION("in what counts") { flip(path(10), 2 * much - 5); }
  SECTION("in what does not") { flip(path(10), 5); }
  SECTION("in the header") { flip(path(10), 2 * much + 4096 - 20); }
  CHECK(names(save(20, model)) == Names{"model.safetensors"});
  CHECK(load(20) == model);
}

TEST_CASE_METHOD(Training, "a checkpoint that cannot be linked is written whole") {
  Tensors model = {{"a", std::string(much, 'a')}, {"b", std::string(much, 'b')}, {"w", std::string(little, '1')}};
  save(10, model);
  model["b"][0] = 'x';
  save(20, model);
  const std::optional<Checkpoint> before = store.latest().value();
  CheckpointWriter writer = store.begin(30).value();
  SECTION("its name is taken") {
    REQUIRE(store::write_file_atomic(writer.directory() + "/model.step-00000020.safetensors", "x").ok());
  }
  SECTION("it was removed meanwhile") { REQUIRE(store::remove_tree(path(20, "")).ok()); }
  model["w"][0] = '2';
  REQUIRE(writer.write("model", sources_of(model), &*before).ok());
  CHECK(names(writer.publish({}).value()) == Names{"model.safetensors"});
  CHECK(load(30) == model);
}

TEST_CASE_METHOD(Training, "whatever changes, every checkpoint that is kept is whole") {
  std::mt19937 random(7);
  Tensors model;
  for (int i = 0; i < 6; ++i) model[fmt::format("t{}", i)] = std::string(5000u << (i % 3), 'a');
  std::map<std::int64_t, Tensors> saved;
  for (std::int64_t step = 1; step <= 60; ++step) {
    for (auto& [name, bytes] : model)
      if (random() % 3 == 0) bytes[random() % bytes.size()] = static_cast<char>('a' + random() % 26);
    if (random() % 10 == 0) model.erase("t5");
    if (random() % 10 == 0) model["t5"] = std::string(20'000, 'z');
    save(step, model);
    saved[step] = model;
    const std::vector<std::int64_t> removed = store.retain({3, 20}).value();
    for (const std::int64_t old : removed) saved.erase(old);
    for (const auto& [kept, tensors] : saved) {
      INFO(step << " " << kept);
      REQUIRE(load(kept) == tensors);
    }
  }
  CHECK(saved.size() == 5);
}
