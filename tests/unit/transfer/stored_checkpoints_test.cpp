#include "runtime/workflow/transfer/stored_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"
#include "tests/unit/store/s3_server.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::transfer;

namespace {

using Fault = S3Server::Fault;

struct Bucket {
  S3Server s3;
  std::unique_ptr<Loop> loop = Loop::create().value();
  Value settings;
  std::string still;  // a file that is the same at every step; "": none

  std::shared_ptr<StoredCheckpoints> writer(const std::string& name, std::int64_t epoch = 1) {
    objects::StoreSetup setup{*loop, settings, nullptr};
    setup.wait_ms = 1;
    const auto url = objects::parse_object_url(s3.address("")).value();
    return std::make_shared<StoredCheckpoints>(objects::open_store(url, setup).value(), *loop, "run/train/", name,
                                               epoch);
  }
  static std::string bytes_of(const std::string& name, std::int64_t step) {
    return name + " of step " + std::to_string(step);
  }
  static std::string step_folder(std::int64_t step) { return fmt::format("step-{:08}", step); }
  StoredCheckpoint checkpoint(std::int64_t step, std::int64_t generation = 1) const {
    StoredCheckpoint out;
    out.step = step;
    out.generation = generation;
    out.directory = "checkpoints/" + step_folder(step);
    if (!still.empty())
      out.files.push_back({"still.safetensors", static_cast<std::int64_t>(still.size()), sha256_hex(still)});
    for (const char* name : {"model.safetensors", "opt.safetensors", manifest_name}) {
      const std::string bytes = bytes_of(name, step);
      out.files.push_back({name, static_cast<std::int64_t>(bytes.size()), sha256_hex(bytes)});
    }
    return out;
  }
  Result<StoredCheckpoint> add(StoredCheckpoints& to, std::int64_t step, std::int64_t generation = 1,
                               StoreRetention rule = {}) {
    const StoredCheckpoints::Send send = [&to, step, this](StoredFile file, std::string key,
                                                           CancelToken token) -> Async<> {
      objects::Body body;
      body.text = file.name == "still.safetensors" ? still : bytes_of(file.name, step);
      const objects::PutRequest request;
      RILLE_CO_CHECK(co_await to.store().put(std::move(key), std::move(body), request, std::move(token)));
      co_return success();
    };
    return run_blocking(*loop, to.add(checkpoint(step, generation), rule, send, CancelToken()));
  }
  Result<Latest> latest() {
    const auto reader = writer("reader");
    return run_blocking(*loop, reader->read(CancelToken()));
  }
  std::vector<std::int64_t> steps() {
    std::vector<std::int64_t> out;
    const Latest now = latest().value();
    for (const StoredCheckpoint& c : now.checkpoints) out.push_back(c.step);
    return out;
  }
  // Whether every file that latest.json names is there, with its bytes.
  bool whole() {
    const Latest now = latest().value();
    for (const StoredCheckpoint& c : now.checkpoints)
      for (const StoredFile& f : c.files) {
        const auto found = s3.objects.find("run/train/" + (f.at.empty() ? c.folder + f.name : f.at));
        if (found == s3.objects.end() || sha256_hex(found->second) != f.sha256) return false;
      }
    return true;
  }
  Result<std::optional<StoredCheckpoints::Found>> fetch(StoredCheckpoints& from, const std::string& folder) {
    const StoredCheckpoints::Take take = [&](StoredCheckpoint c, StoredFile file, std::string, CancelToken token) {
      const std::string to = folder + "/" + c.folder;
      return take_file(from, std::move(c), std::move(file), to, nullptr, std::move(token));
    };
    RILLE_TRY(Latest now, run_blocking(*loop, from.read(CancelToken())));
    return run_blocking(*loop, from.newest(std::move(now), take, CancelToken()));
  }
};

}  // namespace

TEST_CASE_METHOD(Bucket, "a checkpoint in a store: the files, then its manifest, then latest.json") {
  std::vector<std::string> written;
  s3.fault = [&](const S3Server::Asked& asked) {
    if (asked.method == "PUT") written.push_back(asked.key.substr(asked.key.rfind('/') + 1));
    return Fault::none;
  };
  const auto a = writer("a");
  const StoredCheckpoint made = add(*a, 50).value();
  REQUIRE(written.size() == 4);
  std::sort(written.begin(), written.begin() + 2);  // they are sent beside each other
  CHECK(written == std::vector<std::string>{"model.safetensors", "opt.safetensors", "manifest.json", "latest.json"});
  CHECK(made.folder.starts_with("step-00000050-g1-e1-"));
  TempDir dir;
  const auto found = fetch(*a, dir.file("")).value();
  REQUIRE(found);
  CHECK(found->checkpoint.step == 50);
  CHECK(found->skipped.empty());
  CHECK(store::read_file(dir.file(made.folder + "opt.safetensors")).value() == bytes_of("opt.safetensors", 50));
  CHECK(a->made_by(latest().value(), 1));
  CHECK_FALSE(a->made_by(latest().value(), 2));
}

TEST_CASE_METHOD(Bucket, "the newest checkpoints are kept, and those of every so many steps for ever") {
  const auto a = writer("a");
  StoreRetention rule;
  rule.newest = 2;
  rule.every = 20;
  for (std::int64_t step = 10; step <= 60; step += 10) REQUIRE(add(*a, step, 1, rule).ok());
  CHECK(steps() == std::vector<std::int64_t>{60, 50, 40, 20});
  CHECK(whole());
  CHECK(s3.objects.size() == 4 * 3 + 1);
}

TEST_CASE_METHOD(Bucket, "an older machine, process or run never replaces the latest checkpoint") {
  const auto first = writer("a"), again = writer("a", 2), other = writer("b");
  REQUIRE(add(*first, 10).ok());
  REQUIRE(add(*first, 20, 2).ok());
  CHECK(add(*first, 30, 1).error().kind == ErrorKind::state);  // of the machine before
  REQUIRE(add(*again, 30, 2).ok());
  CHECK(add(*first, 40, 2).error().kind == ErrorKind::state);  // of the process before
  REQUIRE(add(*other, 35, 1).ok());                            // a run that began later
  const Error late = add(*again, 50, 2).error();
  CHECK(late.kind == ErrorKind::state);
  CHECK(late.message.find("generation 3") != std::string::npos);
  CHECK(steps() == std::vector<std::int64_t>{35, 30, 20});
  CHECK(whole());
  CHECK(s3.objects.size() == 3 * 3 + 1);
}

TEST_CASE_METHOD(Bucket, "a writer that did not take over a newer one's checkpoint does not replace it") {
  const auto first = writer("a"), other = writer("b");
  REQUIRE(add(*first, 10).ok());
  const std::int64_t base = first->base();
  REQUIRE(add(*other, 20).ok());
  const auto again = writer("a", 2);  // a later process of the first writer, whose training went on meanwhile
  again->count_from(base);
  CHECK(add(*again, 30).error().kind == ErrorKind::state);
  CHECK(steps() == std::vector<std::int64_t>{20, 10});
  again->follow(latest().value());  // now it goes on from step 20
  REQUIRE(add(*again, 40).ok());
  CHECK(add(*other, 50).error().kind == ErrorKind::state);
  CHECK(steps() == std::vector<std::int64_t>{40, 20, 10});
}

TEST_CASE_METHOD(Bucket, "of two writers at the same time the newer one wins, whoever comes first") {
  for (const bool other_is_newer : {false, true}) {
    INFO(other_is_newer);
    s3.objects.clear();
    s3.fault = nullptr;
    Latest theirs;
    theirs.writer = "other";
    StoredCheckpoint made = checkpoint(70);
    made.generation = other_is_newer ? 9 : 0;
    made.folder = stored_folder(made, "00000000");
    theirs.checkpoints = {made};
    const auto a = writer("a");
    bool raced = false;
    s3.fault = [&](const S3Server::Asked& asked) {
      if (asked.method == "PUT" && asked.key.ends_with("latest.json") && !std::exchange(raced, true)) {
        for (const StoredFile& f : made.files) s3.objects["run/train/" + made.folder + f.name] = bytes_of(f.name, 70);
        s3.objects["run/train/latest.json"] = theirs.to_json();
      }
      return Fault::none;
    };
    const auto added = add(*a, 80);
    CHECK(raced);
    if (other_is_newer) CHECK(added.error().kind == ErrorKind::state);
    else REQUIRE(added.ok());
    CHECK(steps() == (other_is_newer ? std::vector<std::int64_t>{70} : std::vector<std::int64_t>{80, 70}));
    CHECK(whole());
  }
}

TEST_CASE_METHOD(Bucket, "a conditional put whose answer is lost has published the checkpoint") {
  for (const int times : {1, 1000}) {  // 1000: no answer comes at all
    INFO(times);
    s3.objects.clear();
    s3.fault = nullptr;
    const auto a = writer("a");
    REQUIRE(add(*a, 10).ok());
    int lost = 0;
    s3.fault = [&](const S3Server::Asked& asked) {
      const bool publishes = asked.method == "PUT" && asked.key.ends_with("latest.json");
      return publishes && lost++ < times ? Fault::lost : Fault::none;
    };
    REQUIRE(add(*a, 20).ok());
    CHECK(lost > 0);
    CHECK(steps() == std::vector<std::int64_t>{20, 10});
    CHECK(whole());
  }
}

TEST_CASE_METHOD(Bucket, "whatever request an upload ends at, latest.json names whole checkpoints") {
  bool ended = true;
  for (int last = 0; ended && last < 40; ++last) {
    INFO(last);
    s3.objects.clear();
    s3.fault = nullptr;
    const auto first = writer("a");
    for (std::int64_t step : {10, 20, 30}) REQUIRE(add(*first, step).ok());
    int asked = 0;
    s3.fault = [&](const S3Server::Asked&) { return asked++ < last ? Fault::none : Fault::denied; };
    ended = !add(*first, 40).ok() || asked > last;  // what fails after latest.json is written changes no result
    s3.fault = nullptr;
    REQUIRE(whole());
    const std::int64_t newest = steps().front();
    CHECK((newest == 30 || newest == 40));
    const auto second = writer("a", 2);
    REQUIRE(add(*second, 50).ok());
    CHECK(whole());
    CHECK(steps().size() == 3);
    CHECK(s3.objects.size() == 3 * 3 + 1);  // nothing is left of the upload that ended
  }
  CHECK_FALSE(ended);
}

TEST_CASE_METHOD(Bucket, "a file that is there already is not sent again, and stays while it is named") {
  still = "frozen";
  int sent = 0;
  s3.fault = [&](const S3Server::Asked& asked) {
    sent += asked.method == "PUT" && asked.key.ends_with("still.safetensors");
    return Fault::none;
  };
  const auto a = writer("a");
  StoreRetention rule;
  rule.newest = 2;
  const std::string at = add(*a, 10, 1, rule).value().folder + "still.safetensors";
  for (std::int64_t step = 20; step <= 60; step += 10) {
    const StoredCheckpoint made = add(*a, step, 1, rule).value();
    CHECK(made.files[0].at == at);
    CHECK(whole());
  }
  CHECK(sent == 1);
  CHECK(s3.objects.size() == 2 * 3 + 1 + 1);
  CHECK(latest().value().to_json().find("\"version\": 2") != std::string::npos);
  TempDir dir;
  const auto found = fetch(*a, dir.file("")).value();
  REQUIRE(found);
  CHECK(store::read_file(dir.file(found->checkpoint.folder + "still.safetensors")).value() == "frozen");
  const auto other = writer("b");  // a later run, too
  REQUIRE(add(*other, 70, 1, rule).ok());
  CHECK(sent == 1);
  still = "melted";
  for (std::int64_t step : {80, 90}) REQUIRE(add(*other, step, 1, rule).ok());
  CHECK(sent == 2);
  CHECK(whole());
  CHECK(s3.objects.count("run/train/" + at) == 0);  // no checkpoint names it any more
  CHECK(s3.objects.size() == 2 * 3 + 1 + 1);
}

TEST_CASE_METHOD(Bucket, "a file that was removed, or goes meanwhile, is sent again") {
  still = "frozen";
  const auto a = writer("a");
  const std::string at = "run/train/" + add(*a, 10).value().folder + "still.safetensors";
  SECTION("removed by others") { s3.objects.erase(at); }
  SECTION("cut off") { s3.objects[at] = "fro"; }
  SECTION("by a writer in between") {
    bool raced = false;
    s3.fault = [&](const S3Server::Asked& asked) {
      if (asked.method == "PUT" && asked.key.ends_with("manifest.json") && !std::exchange(raced, true)) {
        Latest theirs;  // of the same generation, and without the file
        theirs.writer = "a";
        StoredCheckpoint made = checkpoint(15);
        made.files.erase(made.files.begin());
        made.epoch = 1;
        made.folder = stored_folder(made, "00000000");
        for (const StoredFile& f : made.files) s3.objects["run/train/" + made.folder + f.name] = bytes_of(f.name, 15);
        theirs.checkpoints = {made};
        s3.objects["run/train/latest.json"] = theirs.to_json();
        s3.objects.erase(at);
      }
      return Fault::none;
    };
  }
  const StoredCheckpoint made = add(*a, 20).value();
  CHECK(made.files[0].at.empty());
  CHECK(steps().front() == 20);
  const auto now = latest().value();
  const StoredCheckpoint& newest = now.checkpoints.front();
  for (const StoredFile& f : newest.files) CHECK(s3.objects.count("run/train/" + newest.folder + f.name) == 1);
}

TEST_CASE_METHOD(Bucket, "whatever request an upload ends at, files that are shared stay") {
  still = "frozen";
  bool ended = true;
  for (int last = 0; ended && last < 60; ++last) {
    INFO(last);
    s3.objects.clear();
    s3.fault = nullptr;
    StoreRetention rule;
    rule.newest = 2;
    const auto first = writer("a");
    for (std::int64_t step : {10, 20, 30}) REQUIRE(add(*first, step, 1, rule).ok());
    int asked = 0;
    s3.fault = [&](const S3Server::Asked&) { return asked++ < last ? Fault::none : Fault::denied; };
    ended = !add(*first, 40, 1, rule).ok() || asked > last;
    s3.fault = nullptr;
    REQUIRE(whole());
    const auto second = writer("a", 2);
    REQUIRE(add(*second, 50, 1, rule).ok());
    CHECK(whole());
    CHECK(s3.objects.size() == 2 * 3 + 1 + 1);
  }
  CHECK_FALSE(ended);
}

TEST_CASE_METHOD(Bucket, "a damaged checkpoint is passed over for the good one before it") {
  const auto a = writer("a");
  std::vector<StoredCheckpoint> made;
  for (std::int64_t step : {10, 20, 30}) made.push_back(add(*a, step).value());
  s3.objects["run/train/" + made[2].folder + "model.safetensors"][0] = 'X';
  s3.objects.erase("run/train/" + made[1].folder + "opt.safetensors");
  TempDir dir;
  const auto found = fetch(*a, dir.file("")).value();
  REQUIRE(found);
  CHECK(found->checkpoint.step == 10);
  REQUIRE(found->skipped.size() == 2);
  CHECK(found->skipped[0].kind == ErrorKind::integrity);
  CHECK(found->skipped[0].message.find("SHA-256") != std::string::npos);
  CHECK(found->skipped[0].hint.find("step 10: s3://bucket/run/train/step-00000010") != std::string::npos);
  s3.objects["run/train/" + made[0].folder + "manifest.json"] += "x";
  const Error none = fetch(*a, dir.file("")).error();
  CHECK(none.kind == ErrorKind::integrity);
  REQUIRE(none.cause);
  CHECK(none.cause->message.find(made[2].folder) != std::string::npos);
}

TEST_CASE_METHOD(Bucket, "a latest.json that is damaged, foreign or hostile is an error, and is not replaced") {
  const auto a = writer("a");
  REQUIRE(add(*a, 10).ok());
  const std::string good = s3.objects["run/train/latest.json"];
  std::vector<std::string> bad = {"", "{}", "[1]", good.substr(0, good.size() / 2)};
  std::string edited = good;
  edited.replace(edited.find("step-00000010"), 13, "step-00000011");
  bad.push_back(edited);
  const auto hostile = [&](const std::function<void(StoredCheckpoint&)>& change) {
    Latest now = read_latest(good, "x").value();
    change(now.checkpoints.front());
    bad.push_back(now.to_json());
  };
  hostile([](StoredCheckpoint& c) { c.folder = "../../etc/"; });
  hostile([](StoredCheckpoint& c) { c.files[0].name = "../x"; });
  hostile([](StoredCheckpoint& c) { c.files[0].name = c.files[1].name; });
  hostile([](StoredCheckpoint& c) { c.files[0].sha256 = "no"; });
  hostile([](StoredCheckpoint& c) { c.files[0].size_bytes = -1; });
  for (const char* at : {"x", "../secret", "step-00000010-g1-e1-00000000/", "step-00000010-g1-e1-00000000/../x",
                         "other/step-00000010-g1-e1-00000000/x", "/step-00000010-g1-e1-00000000/x"})
    hostile([at](StoredCheckpoint& c) { c.files[0].at = at; });
  hostile([](StoredCheckpoint& c) { c.files.pop_back(); });
  hostile([](StoredCheckpoint& c) { c.step = 11; });
  for (const char* directory : {"", ".", "scripts", "/tmp/step-00000010", "../step-00000010", "a/../step-00000010",
                                "step-00000010/", "checkpoints/step-00000011", "checkpoints/xstep-00000010"})
    hostile([directory](StoredCheckpoint& c) { c.directory = directory; });
  for (const std::string& text : bad) {
    INFO(text);
    s3.objects["run/train/latest.json"] = text;
    CHECK(add(*a, 20).error().kind == ErrorKind::integrity);
    CHECK(s3.objects["run/train/latest.json"] == text);
  }
  CHECK(read_latest(good, "x").value().to_json() == good);
}

TEST_CASE_METHOD(Bucket, "a checkpoint that latest.json could not name is refused before its files are sent") {
  const auto a = writer("a");
  REQUIRE(add(*a, 10).ok());
  const auto before = s3.objects;
  const auto refused = [&](const std::function<void(StoredCheckpoint&)>& change) {
    StoredCheckpoint made = checkpoint(20);
    change(made);
    const StoredCheckpoints::Send send = [](StoredFile, std::string, CancelToken) -> Async<> {
      FAIL_CHECK("a file is sent");
      co_return success();
    };
    const Error e = run_blocking(*loop, a->add(made, StoreRetention(), send, CancelToken())).error();
    CHECK(e.kind == ErrorKind::invalid);
    CHECK(e.message.find("step 20") != std::string::npos);
    CHECK(s3.objects == before);
  };
  refused([](StoredCheckpoint& c) { c.directory = "/tmp/step-00000020"; });
  refused([](StoredCheckpoint& c) { c.directory = "out"; });
  refused([](StoredCheckpoint& c) { c.files.pop_back(); });
  refused([](StoredCheckpoint& c) { c.files.insert(c.files.begin(), stored_files_max, c.files.front()); });
  CHECK(steps() == std::vector<std::int64_t>{10});
}

TEST_CASE_METHOD(Bucket, "a list of checkpoints that grows too large names fewer of the oldest") {
  Latest full;
  full.writer = "a";
  for (std::int64_t step = 800; step > 0; --step) {
    StoredCheckpoint one = checkpoint(step);
    one.folder = stored_folder(one, "00000000");
    for (int i = 0; i < 170; ++i)
      one.files.insert(one.files.begin(), {"rank-" + std::to_string(i), 1, std::string(64, 'a')});
    full.checkpoints.push_back(std::move(one));
  }
  REQUIRE(full.to_json().size() > static_cast<std::size_t>(latest_bytes_max));
  const std::string text = text_of_latest(full, "x").value();
  CHECK(text.size() <= static_cast<std::size_t>(latest_bytes_max));
  const Latest now = read_latest(text, "x").value();
  CHECK(now.checkpoints.front().step == 800);
  CHECK(now.checkpoints.size() > 400);
  Latest one;
  one.checkpoints = {checkpoint(1)};
  one.checkpoints[0].folder = stored_folder(one.checkpoints[0], "00000000");
  one.writer = std::string(5000, 'w');
  CHECK(text_of_latest(one, "x").error().kind == ErrorKind::invalid);
}

TEST_CASE_METHOD(Bucket, "a folder that is left over is removed page by page") {
  const std::string left = "run/train/step-00000001-g0-e1-00000000/";
  for (int i = 0; i < 25; ++i) s3.objects[left + "file-" + std::to_string(100 + i)] = "x";
  s3.page_max = 10;
  std::vector<std::string> asked;  // of the folder
  s3.fault = [&](const S3Server::Asked& a) {
    if (a.key.starts_with(left)) asked.push_back(a.method);
    return Fault::none;
  };
  const auto a = writer("a");
  REQUIRE(add(*a, 10).ok());
  CHECK(s3.objects.lower_bound(left)->first.find(left) == std::string::npos);
  REQUIRE(asked.size() == 3 + 25);
  for (std::size_t at = 0; at < asked.size(); ++at) CHECK(asked[at] == (at % 11 == 0 ? "GET" : "DELETE"));
}

TEST_CASE_METHOD(Bucket, "a store that lists other keys than were asked for does not get them removed") {
  const std::string left = "run/train/step-00000001-g0-e1-00000000/";
  const std::string theirs = "run/other/step-00000001-g0-e1-00000000/";
  for (const std::string& intruder : {theirs + "model", theirs}) {
    INFO(intruder);
    s3.objects = {{left + "model", "x"}, {theirs + "model", "theirs"}};
    std::size_t removed_elsewhere = 0;
    s3.fault = [&](const S3Server::Asked& a) {
      removed_elsewhere += a.method == "DELETE" && !a.key.starts_with("run/train/");
      return Fault::none;
    };
    s3.intruders = {intruder};
    const auto a = writer("a");
    REQUIRE(add(*a, 10).ok());  // the checkpoint is published; what is left over stays
    CHECK(removed_elsewhere == 0);
    CHECK(steps() == std::vector<std::int64_t>{10});
  }
}
