#include "runtime/compute/data/checkpoint.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "tests/unit/store/limited_child.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::data;

namespace {

Result<Checkpoint> save(const CheckpointStore& store, std::int64_t step, Manifest m = {}, std::size_t bytes = 5000) {
  std::string weights(bytes, static_cast<char>(step));
  RILLE_TRY(CheckpointWriter writer, store.begin(step));
  RILLE_CHECK(writer.write("model", {{"w", "U8", {static_cast<std::int64_t>(bytes)}, weights.data()}}));
  RILLE_CHECK(writer.write("opt", {{"m", "U8", {4}, weights.data()}}));
  return writer.publish(std::move(m));
}

std::vector<std::int64_t> steps(const CheckpointStore& store) {
  std::vector<std::int64_t> out;
  auto list = store.list().value();
  for (const Checkpoint& c : list) out.push_back(c.manifest.step);
  return out;
}

void flip_last_byte(const std::string& path) {
  std::string bytes = store::read_file(path).value();
  bytes.back() ^= 1;
  REQUIRE(store::write_file_atomic(path, bytes).ok());
}

void truncate_to(const std::string& path, std::size_t size) {
  REQUIRE(store::write_file_atomic(path, store::read_file(path).value().substr(0, size)).ok());
}

}  // namespace

TEST_CASE("a published checkpoint comes back with its state and its tensors") {
  TempDir dir;
  CheckpointStore store(dir.file("a/ck"));
  CHECK(!store.latest().value());
  Manifest m;
  m.generation = 2, m.epoch = 7;
  m.cursor = Value().set("sample", 1234).set("seed", "18446744073709551615");
  m.rng = Value().set("step", 50);
  m.schedule = Value().set("lr", 0.1).set("scale", 65536.0);
  m.metadata = Value().set("$odd", "\xff\xfe").set("loss", 1.0 / 3);
  auto saved = save(store, 50, m);
  REQUIRE(saved.ok());
  CHECK(saved->directory == dir.file("a/ck/step-00000050"));
  auto loaded = store.load_latest(true);
  REQUIRE(loaded.ok());
  CHECK(loaded->manifest.step == 50);
  CHECK(loaded->manifest.generation == 2);
  CHECK(loaded->manifest.epoch == 7);
  CHECK(loaded->manifest.created_us > 0);
  CHECK(loaded->manifest.cursor == m.cursor);
  CHECK(loaded->manifest.rng == m.rng);
  CHECK(loaded->manifest.schedule == m.schedule);
  CHECK(loaded->manifest.metadata == m.metadata);
  REQUIRE(loaded->manifest.files.size() == 2);
  auto file = loaded->open("model.safetensors");
  REQUIRE(file.ok());
  CHECK(file->bytes(*file->find("w")) == std::string(5000, 50));
  CHECK(loaded->open("other.safetensors").error().kind == ErrorKind::invalid);
}

TEST_CASE("an unpublished checkpoint is not seen and goes away") {
  TempDir dir;
  CheckpointStore store(dir.path);
  {
    auto writer = store.begin(10);
    REQUIRE(writer.ok());
    std::uint8_t byte = 1;
    REQUIRE(writer->write("m", {{"w", "U8", {1}, &byte}}).ok());
    CHECK(steps(store).empty());
    CHECK(dir.entries() == 1);
    // Another writer's begin does not touch unfinished work.
    REQUIRE(save(store, 11).ok());
    REQUIRE(writer->publish({}).ok());
    CHECK(!writer->publish({}).ok());
  }
  CHECK(steps(store) == std::vector<std::int64_t>{10, 11});
  { auto writer = store.begin(12); }
  CHECK(dir.entries() == 2);
  REQUIRE(store::make_directories(dir.file(".tmp-step-00000009-dead/x")).ok());  // a writer that was killed
  { auto writer = store.begin(12); }
  CHECK(dir.entries() == 2);
}

TEST_CASE("the same step is replaced whole") {
  TempDir dir;
  CheckpointStore store(dir.path);
  REQUIRE(save(store, 5, {}, 100).ok());
  REQUIRE(save(store, 5, {}, 200).ok());
  CHECK(store.load(5)->open("model.safetensors")->find("w")->shape[0] == 200);
  CHECK(dir.entries() == 1);
}

TEST_CASE("damage is named together with the good checkpoint before it") {
  TempDir dir;
  CheckpointStore store(dir.path);
  for (int step : {10, 20, 30}) REQUIRE(save(store, step).ok());
  std::string newest = dir.file("step-00000030");
  std::string naming;
  SECTION("a flipped bit") {
    flip_last_byte(newest + "/model.safetensors"), naming = "model.safetensors' has the XXH3";
  }
  SECTION("a torn file") { truncate_to(newest + "/model.safetensors", 4100), naming = "has 4100 bytes"; }
  SECTION("a missing file") {
    (void)store::remove_tree(newest + "/opt.safetensors"), naming = "opt.safetensors' is missing";
  }
  SECTION("a torn manifest") { truncate_to(newest + "/manifest.json", 100), naming = "manifest"; }
  SECTION("an empty manifest") { truncate_to(newest + "/manifest.json", 0), naming = "manifest"; }
  SECTION("no manifest") { (void)store::remove_tree(newest + "/manifest.json"), naming = "no manifest.json"; }
  SECTION("an edited manifest") {
    std::string text = store::read_file(newest + "/manifest.json").value();
    text.replace(text.find("\"step\": 30"), 10, "\"step\": 31");
    REQUIRE(store::write_file_atomic(newest + "/manifest.json", text).ok());
    naming = "digest";
  }
  SECTION("a manifest of another program") {
    REQUIRE(store::write_file_atomic(newest + "/manifest.json", "{\"a\":1}").ok());
    naming = "not Rille's";
  }
  SECTION("a manifest of another step") {
    REQUIRE(store::write_file_atomic(newest + "/manifest.json",
                                     store::read_file(dir.file("step-00000020/manifest.json")).value())
                .ok());
    naming = "of step 20";
  }
  flip_last_byte(dir.file("step-00000020/model.safetensors"));  // so the good one is step 10
  for (auto& loaded : {store.load(30), store.load_latest(true)}) {
    REQUIRE(!loaded.ok());
    INFO(loaded.error().message);
    CHECK(loaded.error().kind == ErrorKind::integrity);
    CHECK(loaded.error().message.find("step-00000030") != std::string::npos);
    CHECK(loaded.error().message.find(naming) != std::string::npos);
    CHECK(loaded.error().hint.find("step-00000010") != std::string::npos);
  }
  std::vector<Error> skipped;
  CHECK(store.load_latest(false, &skipped).value().manifest.step == 10);
  CHECK(skipped.size() == 2);
}

TEST_CASE("a store without a good checkpoint says so") {
  TempDir dir;
  CheckpointStore store(dir.path);
  CHECK(store.load_latest().error().kind == ErrorKind::state);
  CHECK_FALSE(store.any().value());
  REQUIRE(save(store, 10).ok());
  CHECK(store.load(11).error().hint.find("step 10") != std::string::npos);
  flip_last_byte(dir.file("step-00000010/model.safetensors"));
  const Error none = store.load_latest().error();
  CHECK(none.kind == ErrorKind::integrity);
  REQUIRE(none.cause);
  CHECK(none.cause->message.find("XXH3") != std::string::npos);
  CHECK(store.load(10).error().hint == "there is no good checkpoint before this one");
  std::filesystem::resize_file(dir.file("step-00000010/model.safetensors"), 10);
  CHECK_FALSE(store.latest().value().has_value());
  CHECK(store.any().value());
}

TEST_CASE("a full disk leaves the previous checkpoint and no temporary files") {
  TempDir dir;
  CheckpointStore store(dir.path);
  REQUIRE(save(store, 10).ok());
  int code = in_child_with_file_limit(20'000, [&] {
    auto saved = save(store, 20, {}, 100'000);
    return !saved.ok() && saved.error().kind == ErrorKind::io ? 7 : 1;
  });
  CHECK(code == 7);
  CHECK(dir.entries() == 1);
  CHECK(store.load_latest(true).value().manifest.step == 10);
}

TEST_CASE("retention keeps the newest and the multiples") {
  TempDir dir;
  CheckpointStore store(dir.path);
  for (int step = 10; step <= 80; step += 10) REQUIRE(save(store, step, {}, 10).ok());
  CHECK(store.retain({2, 40}).value() == std::vector<std::int64_t>{10, 20, 30, 50, 60});
  CHECK(steps(store) == std::vector<std::int64_t>{40, 70, 80});
  CHECK(store.retain({0, 0}).value() == std::vector<std::int64_t>{40, 70});
  CHECK(steps(store) == std::vector<std::int64_t>{80});
  CHECK(dir.entries() == 1);
}

TEST_CASE("several write and clear away in one store at the same time") {
  TempDir dir;
  std::vector<std::string> said(4);
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < said.size(); ++w)
    writers.emplace_back([&, w] {
      CheckpointStore store(dir.path);
      for (int i = 0; i < 150 && said[w].empty(); ++i) {
        auto saved = save(store, static_cast<std::int64_t>(w) + 10 * (i % 5), {}, 100);
        if (!saved) said[w] = saved.error().summary();
        else if (auto kept = store.retain({3, 0}); !kept) said[w] = kept.error().summary();
      }
    });
  for (auto& t : writers) t.join();
  for (const auto& text : said) CHECK(text == "");
  CHECK(CheckpointStore(dir.path).load_latest().ok());
}

TEST_CASE("an older machine never replaces latest") {
  TempDir dir;
  CheckpointStore store(dir.path);
  Manifest older, newer;
  older.generation = 1, older.epoch = 9;
  newer.generation = 2, newer.epoch = 3;
  REQUIRE(save(store, 40, newer).ok());
  auto late = save(store, 60, older);
  REQUIRE(!late.ok());
  CHECK(late.error().kind == ErrorKind::state);
  CHECK(late.error().message.find("generation 2") != std::string::npos);
  CHECK(dir.entries() == 1);
  // Work repeated after going back counts as newer than what it replaces.
  newer.epoch = 4;
  REQUIRE(save(store, 30, newer).ok());
  CHECK(store.latest().value()->manifest.step == 30);
}

TEST_CASE("ranks write their own shards and one publishes") {
  TempDir dir;
  CheckpointStore store(dir.path);
  auto writer = store.begin(3);
  REQUIRE(writer.ok());
  std::uint8_t byte = 9;
  auto print = store::write_safetensors(writer->directory() + "/rank-1.safetensors", {{"w", "U8", {1}, &byte}});
  REQUIRE(print.ok());
  CHECK(!writer->add({"rank-2.safetensors", *print}).ok());
  store::Fingerprint longer = *print;
  ++longer.size_bytes;
  CHECK(writer->add({"rank-1.safetensors", longer}).error().kind == ErrorKind::integrity);
  REQUIRE(writer->add({"rank-1.safetensors", *print}).ok());
  REQUIRE(writer->publish({}).ok());
  CHECK(store.load(3)->open("rank-1.safetensors").ok());
}

TEST_CASE("names that leave the directory are refused") {
  TempDir dir;
  CheckpointStore store(dir.path);
  auto writer = store.begin(1);
  std::uint8_t byte = 1;
  for (const char* part : {"../m", ".m", "/m", ""})
    CHECK(writer->write(part, {{"w", "U8", {1}, &byte}}).error().kind == ErrorKind::invalid);
  REQUIRE(writer->write("m", {{"w", "U8", {1}, &byte}}).ok());
  CHECK(writer->write("m", {{"w", "U8", {1}, &byte}}).error().kind == ErrorKind::invalid);
  Manifest m;
  m.files.push_back({"../m.safetensors", store::fingerprint("")});
  CHECK(Manifest::from_json(m.to_json(), "x").error().kind == ErrorKind::integrity);
  CHECK(store.begin(-1).error().kind == ErrorKind::invalid);
}
