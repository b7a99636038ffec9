// Calls whose checkpoints go to a store, against real agents of the local provider and a server of S3.
#include <fmt/format.h>

#include <fstream>

#include "runtime/workflow/transfer/latest_file.hpp"
#include "tests/unit/engine/runner.hpp"
#include "tests/unit/store/s3_server.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;
using Live = Runner::Live;

namespace {
// A call on a real agent that publishes a checkpoint of this step, whose files were staged before. It ends once
// `awaited` is there; "": at once.
auto publishing(const Runner& r, const S3Server& s3, bool stages, std::string awaited = "", int step = 7) {
  return [&r, &s3, stages, awaited, step](Live& l) -> CppGuest::Body {
    return [&l, &r, &s3, stages, awaited, step](FiberId f) -> Async<Value> {
      const Value none{Value::Object{}};
      RILLE_CO_TRY(LeaseView box, co_await l.run->rent(f, stages ? "box" : "other", none, "test"));
      const std::string from = r.dir.path + "/made", to = fmt::format("checkpoints/step-{:08}", step);
      if (stages) RILLE_CO_CHECK(co_await l.run->stage(f, box.id, from, to, none, "test:0"));
      Value payload;
      payload.set("do", "hold").set("file", awaited.empty() ? from : awaited).set("value", 7);
      if (stages) payload.set("checkpoint", Value().set("step", step).set("directory", to));
      CallSpec s = spec("train", payload.to_json());
      s.keep_checkpoints = true;
      s.checkpoint_store = s3.address("runs");
      co_return co_await l.run->call(f, box.id, std::move(s), "test:call");
    };
  };
}

void make_checkpoint(const Runner& r) {
  std::filesystem::create_directories(r.dir.path + "/made");
  std::ofstream(r.dir.path + "/made/model.safetensors") << std::string(20'000'000, 'w');  // two parts
  std::ofstream(r.dir.path + "/made/manifest.json") << "{}";
}

// Looks at the newest checkpoint that a call of another run, which goes on with the same training, finds on its
// machine. The machine goes with the run.
void look_at_restored(const S3Server& s3, const std::function<void(const std::string& there)>& look) {
  Runner next;
  const std::string go = next.dir.path + "/go";
  auto live = next.begin(publishing(next, s3, false, go));
  until(*live, [&] { return next.count("checkpoint_restored") == 1; });
  look(next.instance() + "/work/checkpoints/step-00000007/");
  std::ofstream(go) << "x";
  live->loop->run_until([&] { return live->out.has_value(); });
  CHECK(live->out->value() == Value(7));
}
}  // namespace

TEST_CASE("a machine sends its checkpoints to a store at signed addresses, and the next machine fetches them") {
  S3Server s3;
  Runner r;
  make_checkpoint(r);
  std::size_t parts = 0;
  s3.fault = [&](const S3Server::Asked& asked) {
    const bool part = asked.method == "PUT" && asked.query.find("partNumber=") != std::string::npos;
    parts += part && asked.query.find("X-Amz-Signature=") != std::string::npos;
    return S3Server::Fault::none;
  };
  REQUIRE(r.run(publishing(r, s3, true)).value() == Value(7));
  CHECK(parts == 3);
  CHECK(r.count("checkpoint_kept") == 1);
  CHECK(r.count("warning") == 0);
  CHECK_FALSE(std::filesystem::exists(r.dir.path + "/runs/r/checkpoints"));
  const auto latest = transfer::read_latest(s3.objects["runs/train/latest.json"], "latest.json").value();
  REQUIRE(latest.checkpoints.size() == 1);
  const transfer::StoredCheckpoint& stored = latest.checkpoints.front();
  CHECK(stored.step == 7);
  CHECK(s3.objects["runs/train/" + stored.folder + "model.safetensors"] == std::string(20'000'000, 'w'));

  look_at_restored(s3, [](const std::string& there) {
    CHECK(std::filesystem::file_size(there + "model.safetensors") == 20'000'000);
    CHECK(std::filesystem::file_size(there + "manifest.json") == 2);
  });
}

TEST_CASE("a resumed runner does not replace a later run's checkpoint with those of a call that ran on") {
  S3Server s3;
  Runner r, later;
  make_checkpoint(r);
  const std::string go = r.dir.path + "/go";
  auto first = r.begin(publishing(r, s3, true, go));
  until(*first, [&] { return r.count("checkpoint_kept") == 1; });
  first.reset();  // the runner is killed, and the call goes on
  make_checkpoint(later);
  REQUIRE(later.run(publishing(later, s3, true, "", 8)).value() == Value(7));
  CHECK(later.count("checkpoint_restored") == 1);  // though it has the same id and its call the same key
  const std::string theirs = s3.objects["runs/train/latest.json"];
  CHECK(transfer::read_latest(theirs, "latest.json").value().checkpoints.front().generation == 2);
  std::ofstream(go) << "x";
  REQUIRE(r.run(publishing(r, s3, true, go)).value() == Value(7));
  CHECK(r.count("checkpoint_kept") == 1);
  CHECK(r.count("warning") == 1);
  CHECK(s3.objects["runs/train/latest.json"] == theirs);
}

TEST_CASE("a checkpoint with an empty file is kept in a store") {
  S3Server s3;
  Runner r;
  make_checkpoint(r);
  std::ofstream(r.dir.path + "/made/empty.txt");
  REQUIRE(r.run(publishing(r, s3, true)).value() == Value(7));
  CHECK(r.count("checkpoint_kept") == 1);
  CHECK(r.count("warning") == 0);
  look_at_restored(s3, [](const std::string& there) { CHECK(std::filesystem::file_size(there + "empty.txt") == 0); });
}

TEST_CASE("the last checkpoint is sent again to a store that was throttled") {
  S3Server s3;
  Runner r;
  make_checkpoint(r);
  int refused = 0;
  s3.fault = [&](const S3Server::Asked& asked) {
    const bool publishes = asked.method == "PUT" && asked.key.ends_with("latest.json");
    return publishes && refused++ == 0 ? S3Server::Fault::throttled : S3Server::Fault::none;
  };
  REQUIRE(r.run(publishing(r, s3, true)).value() == Value(7));
  CHECK(refused == 2);
  CHECK(r.count("checkpoint_kept") == 1);
  CHECK(r.count("warning") == 0);
}

TEST_CASE("a checkpoint that cannot be sent to the store is a warning, and latest.json is as before") {
  S3Server s3;
  Runner r;
  make_checkpoint(r);
  s3.fault = [](const S3Server::Asked& asked) {
    return asked.query.find("partNumber=2") != std::string::npos ? S3Server::Fault::denied : S3Server::Fault::none;
  };
  REQUIRE(r.run(publishing(r, s3, true)).value() == Value(7));
  CHECK(r.count("checkpoint_kept") == 0);
  CHECK(r.count("warning") == 1);
  CHECK(s3.objects.empty());
}
