// box:stage against an agent that only notes what it is asked: which way the bytes go, and what follows them. With real
// agents and a store: tests/contract/stores/stage_test.py.
#include <catch2/catch.hpp>
#include <fstream>

#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/stage_choices.hpp"
#include "tests/unit/engine/world.hpp"
#include "tests/unit/net/scripted_server.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

struct Asked {
  // "pull PATH", "put PATH", "unpack ARCHIVE FOLDER", "prune FOLDER: KEPT ..", "remove FOLDER"
  std::vector<std::string> order;
  std::vector<agent::PullRequest> pulls;
  std::vector<std::string> urls;
  std::vector<Error> pull_errors;  // of the next pulls
  std::int64_t free_bytes = std::int64_t{1} << 40, there_bytes = 0;
  int connections = 0;
};

class AskedAgent final : public agent::AgentClient {
 public:
  explicit AskedAgent(Asked& asked) : asked_(asked) {}
  bool broken() const override { return false; }
  Async<Value> describe(CancelToken) override { co_return Value(Value::Object{}); }
  Async<agent::Transfer> put(std::string, std::string remote, agent::TransferProgress, CancelToken) override {
    asked_.order.push_back("put " + remote);
    agent::Transfer moved;
    moved.files = 2;
    moved.size_bytes = 20;
    co_return moved;
  }
  Async<agent::Pulled> pull(agent::PullRequest request, agent::PullSign sign, agent::TransferProgress,
                            CancelToken token) override {
    asked_.order.push_back("pull " + request.path);
    asked_.pulls.push_back(request);
    RILLE_CO_TRY(const agent::PullAddress address, co_await sign(token));
    asked_.urls.push_back(address.url);
    if (!asked_.pull_errors.empty()) {
      const Error e = asked_.pull_errors.front();
      asked_.pull_errors.erase(asked_.pull_errors.begin());
      co_return e;
    }
    agent::Pulled pulled;
    pulled.size_bytes = pulled.moved_bytes = 7;
    pulled.version = "\"v1\"";
    co_return pulled;
  }
  Async<std::int64_t> room(std::string, bool below, CancelToken) override {
    co_return asked_.free_bytes + (below ? asked_.there_bytes : 0);
  }
  Async<agent::Transfer> unpack(std::string archive, std::string folder, CancelToken) override {
    asked_.order.push_back("unpack " + archive + " " + folder);
    agent::Transfer made;
    made.files = 3;
    made.size_bytes = 30;
    co_return made;
  }
  Async<> prune(std::string folder, std::vector<std::string> keep, CancelToken) override {
    std::string line = "prune " + folder + ":";
    std::sort(keep.begin(), keep.end());
    for (const std::string& path : keep) line += " " + path;
    asked_.order.push_back(line);
    co_return success();
  }
  Async<> remove(std::string folder, CancelToken) override {
    asked_.order.push_back("remove " + folder);
    co_return success();
  }

 private:
  Asked& asked_;
};

class NotingConnector final : public Connector {
 public:
  explicit NotingConnector(Asked& asked) : asked_(asked) {}
  Async<std::unique_ptr<agent::AgentClient>> connect(Loop&, lease::Lease, provider::Machine, std::int64_t,
                                                     CancelToken) override {
    ++asked_.connections;
    std::unique_ptr<agent::AgentClient> made = std::make_unique<AskedAgent>(asked_);
    co_return made;
  }
  void forget(const std::string&) override {}
  void adapt_query(Value&) const override {}
  void adapt_offers(Value&) const override {}
  void adapt_volume(Value&) const override {}
  void adapt_rent(const std::string&, Value&) override {}
  Result<Value> adapt_resize(Value options) const override { return options; }
  void adapt_call(const CallSpec&, agent::StartRequest&) const override {}
  Result<bool> reads_source(const std::string&, const Value&) override { return true; }
  bool real_time() const override { return false; }
  std::int64_t next_look_ms(const lease::Lease&, std::int64_t) const override { return -1; }

 private:
  Asked& asked_;
};

// A run on a rented machine that stages once. Connections of this process are allowed only by may_connect.
struct Stager {
  World world;
  Asked asked;
  std::vector<Value> events;
  std::vector<std::string> hosts;  // to which this process wanted to connect
  bool may_connect = false;
  std::vector<Value> progress;

  Result<Value> stage(std::string from, std::string to, Value options = Value(Value::Object{})) {
    auto loop = Loop::create().value();
    auto journal = store::Journal::open(*loop, world.dir.path + "/journal.db").value();
    provider::Registry registry;
    (void)registry.add(std::make_unique<MemoryProvider>(*loop, world));
    lease::Hooks hooks;
    hooks.pause = [l = loop.get()](std::int64_t, CancelToken token) { return sleep_for(*l, 0, token); };
    lease::Manager leases(*loop, *journal, registry, "test", hooks);
    (void)run_blocking(*loop, journal->commit([](store::Db& db) {
      return db.run(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','test','durable','running',1,'{}',0,0,'h',1)");
    }));
    RunConfig config;
    config.id = "r";
    config.home = world.dir.path + "/runs/r";
    config.epoch = 1;
    config.number = run_number(journal->reader(), "r").value();
    config.connector = std::make_shared<NotingConnector>(asked);
    config.hooks.event = [this](const Value& e) { events.push_back(e); };
    config.hooks.progress = [this](const Value& p) { progress.push_back(p); };
    auto replay = Replay::load(journal->reader(), "r").value();
    auto run = std::make_unique<RunImpl>(*loop, std::move(config), journal.get(), &leases, std::move(replay));
    RunLimits limits;
    limits.may_connect = [this](const std::string& host, const std::string&) -> Result<> {
      hosts.push_back(host);
      if (may_connect) return success();
      return make_error(ErrorKind::denied, "not from here");
    };
    run->limit(limits);
    CppGuest guest(*run);
    const FunctionRef main = guest.function([&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run->rent(f, "box", Value(Value::Object{}), "test"));
      co_return co_await run->stage(f, box.id, from, to, options, "test:stage");
    });
    std::optional<Result<Value>> out;
    loop->spawn([](Run& r, CppGuest& g, FunctionRef f, std::optional<Result<Value>>& o) -> Task<void> {
      o.emplace(co_await r.execute(g, f, Value()));
    }(*run, guest, main, out));
    loop->run_until([&] { return out.has_value(); });
    journal.reset();
    loop->abandon_tasks();
    run.reset();
    return std::move(*out);
  }
  int warnings() const {
    int n = 0;
    for (const Value& e : events) n += e.text("event") == "warning" && e.text("what").starts_with("stage ");
    return n;
  }
};

using Order = std::vector<std::string>;

Error coded(ErrorKind kind, const char* code) {
  Error e = make_error(kind, "for this test");
  e.code = code;
  return e;
}

}  // namespace

TEST_CASE("stage: a rented machine fetches from the web by itself") {
  Stager s;
  const std::string digest(64, 'A');
  const auto moved =
      s.stage("https://example.org/x.bin?sig=1", "data/", Value().set("sha256", digest).set("bandwidth", "1MB/s"));
  REQUIRE(moved.ok());
  CHECK(moved->integer("files") == 1);
  CHECK(moved->integer("bytes") == 7);
  CHECK(moved->text("version") == "\"v1\"");
  CHECK(s.asked.order == Order{"pull data/x.bin"});
  CHECK(s.asked.urls == Order{"https://example.org/x.bin?sig=1"});
  CHECK(s.asked.pulls[0].sha256 == std::string(64, 'a'));
  CHECK(s.asked.pulls[0].bytes_per_second_max == 1'000'000);
  CHECK(s.asked.pulls[0].key.find("example") == std::string::npos);
  CHECK(s.hosts.empty());
}

TEST_CASE("stage: what the machine cannot reach passes through this machine, and an event says so once") {
  Stager s;
  s.asked.pull_errors = {coded(ErrorKind::network, "cannot_reach")};
  const auto moved = s.stage("https://example.org/x.bin", "x");
  REQUIRE_FALSE(moved.ok());
  CHECK(moved.error().kind == ErrorKind::denied);  // this process may not connect
  CHECK(s.hosts == Order{"example.org"});
  CHECK(s.asked.order == Order{"pull x"});
  CHECK(s.warnings() == 1);
}

TEST_CASE("stage: a broken channel is connected again, and other errors end it") {
  Stager s;
  s.asked.pull_errors = {coded(ErrorKind::network, "")};
  REQUIRE(s.stage("https://example.org/x", "x").ok());
  CHECK(s.asked.order == Order{"pull x", "pull x"});
  CHECK(s.asked.connections == 2);
  CHECK(s.warnings() == 0);
  Stager other;
  other.asked.pull_errors = {coded(ErrorKind::quota, "disk_full")};
  const auto full = other.stage("https://example.org/x", "x");
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().code == "disk_full");
  CHECK(other.asked.order == Order{"pull x"});
}

TEST_CASE("stage: a folder that does not fit on the machine's disk is refused before anything is moved") {
  Stager s;
  const std::string folder = s.world.dir.path + "/folder";
  std::filesystem::create_directories(folder + "/sub");
  std::ofstream(folder + "/a") << "twelve bytes";
  std::ofstream(folder + "/sub/b") << "eight by";
  s.asked.free_bytes = 19;
  const auto full = s.stage(folder, "data/");
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().code == "disk_full");
  CHECK(full.error().message.find("'data") != std::string::npos);
  CHECK(s.asked.order.empty());
  Stager exact;
  exact.asked.free_bytes = 20;
  CHECK(exact.stage(folder, "data/").ok());
  Stager again;  // some of it is there
  again.asked.free_bytes = 10, again.asked.there_bytes = 10;
  CHECK(again.stage(folder, "data/").ok());
}

TEST_CASE("stage: an address on this machine is fetched here, since the machine has another loopback") {
  Stager s;
  REQUIRE_FALSE(s.stage("http://127.0.0.1:1/x", "x").ok());
  CHECK(s.asked.order.empty());
  CHECK(s.hosts == Order{"127.0.0.1"});
}

TEST_CASE("stage: neither progress nor errors show what is signed in an address") {
  ScriptedServer server([](const ScriptedServer::Request&, ScriptedServer::Wire& w) { w.answer(200, "bytes"); });
  Stager s;
  s.may_connect = true;
  REQUIRE(s.stage(server.url("/set.bin?signature=a/secret"), "data/").ok());
  REQUIRE_FALSE(s.progress.empty());
  CHECK(s.progress.front().text("what") == "fetch set.bin");
  for (const Value& p : s.progress) CHECK(p.text("what").find("secret") == std::string::npos);
  const auto message = [](std::string from, Value options = Value(Value::Object{})) {
    Stager other;
    return other.stage(std::move(from), "data/", std::move(options)).error().message;
  };
  const std::string nameless = message("https://user:secret@example.org/?signature=secret");
  CHECK(nameless.find("https://example.org/") != std::string::npos);
  CHECK(nameless.find("secret") == std::string::npos);
  CHECK(message("ftp://user:secret@example.org/x").find("secret") == std::string::npos);
  const std::string folder = s.world.dir.path + "/folder";
  std::filesystem::create_directories(folder);
  CHECK(message(folder, Value().set("unpack", true)).find(folder) != std::string::npos);
}

TEST_CASE("stage: an archive lies beside its folder while it is unpacked") {
  Stager s;
  const auto moved = s.stage("https://example.org/set.tar.zst", "data/", Value().set("unpack", true));
  REQUIRE(moved.ok());
  CHECK(moved->integer("files") == 3);
  CHECK(moved->integer("bytes") == 30);
  REQUIRE(s.asked.order.size() == 3);
  const std::string beside = s.asked.order[2].substr(7);
  CHECK(beside.starts_with("data.unpack-"));
  CHECK(s.asked.order ==
        Order{"pull " + beside + "/set.tar.zst", "unpack " + beside + "/set.tar.zst data", "remove " + beside});
}

TEST_CASE("stage: a mirror of a folder keeps what the folder has") {
  Stager s;
  const std::string folder = s.world.dir.path + "/folder";
  std::filesystem::create_directories(folder + "/deep");
  std::ofstream(folder + "/a") << "a";
  std::ofstream(folder + "/deep/b") << "b";
  std::filesystem::create_directory_symlink(folder + "/deep", folder + "/link");
  REQUIRE(s.stage(folder, "data/", Value().set("mirror", true)).ok());
  CHECK(s.asked.order == Order{"put data", "prune data: a deep/b"});
  Stager work;
  const auto refused = work.stage(folder, "./", Value().set("mirror", true));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(work.asked.order.empty());
}

TEST_CASE("stage: options") {
  const auto kind = [](Value options) {
    const auto read = read_stage_choices(options);
    return read ? ErrorKind::internal : read.error().kind;
  };
  CHECK(read_stage_choices(Value(Value::Object{})).ok());
  CHECK(read_stage_choices(Value().set("bandwidth", 1000))->bytes_per_second_max == 1000);
  CHECK(read_stage_choices(Value().set("bandwidth", "100MB/s"))->bytes_per_second_max == 100'000'000);
  CHECK(read_stage_choices(Value().set("bandwidth", "1MiB"))->bytes_per_second_max == 1 << 20);
  for (const Value& wrong : {Value(0), Value(-1), Value("fast"), Value(true), Value(1e300), Value("")})
    CHECK(kind(Value().set("bandwidth", wrong)) == ErrorKind::invalid);
  CHECK(kind(Value().set("mirror", 1)) == ErrorKind::invalid);
  CHECK(kind(Value().set("unpack", "yes")) == ErrorKind::invalid);
  CHECK(kind(Value().set("sha256", 7)) == ErrorKind::invalid);
  CHECK(kind(Value().set("sha256", "abc")) == ErrorKind::invalid);
  CHECK(kind(Value().set("mirror", true).set("unpack", true)) == ErrorKind::invalid);
  CHECK(kind(Value().set("mirror", true).set("sha256", std::string(64, 'a'))) == ErrorKind::invalid);
}
