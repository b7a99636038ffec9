// A machine becomes another type just as a call begins on it: what becomes of the call, and of the machine. The local
// provider cannot resize; here its instances stand still for it, as a cloud's machines do.
#include <catch2/catch.hpp>
#include <future>

#include "runtime/core/loop/process_tree.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "tests/unit/engine/world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

using provider::Machine;
using provider::MachineState;
using provider::Offer;

Async<> wait_for(Future<bool> what) {
  co_await what;
  co_return success();
}

Async<> at_once() { co_return success(); }

class Resizable final : public provider::Provider {
 public:
  using Hook = std::function<Async<>()>;
  Hook before_offers, before_describe, while_still;  // each is called once
  std::function<void()> described;
  int creates = 0, resizes = 0, terminates = 0;

  Resizable(Loop& loop, const std::string& root)
      : local_(provider::make_local_provider(loop, provider::LocalOptions{root, 0, 2000})) {}
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return local_->traits(); }

  Async<std::vector<Offer>> offers(provider::OfferQuery query, CancelToken token) override {
    RILLE_CO_CHECK(co_await once(before_offers));
    RILLE_CO_TRY(const std::vector<Offer> own, co_await local_->offers(std::move(query), std::move(token)));
    std::vector<Offer> out;
    for (const char* id : {"small", "large"}) {
      out.push_back(own.at(0));
      out.back().provider = name_;
      out.back().id = id;
    }
    co_return out;
  }
  Async<Machine> create(provider::CreateRequest request, CancelToken token) override {
    ++creates;
    RILLE_CO_TRY(Machine made, co_await local_->create(std::move(request), std::move(token)));
    co_return shown(std::move(made));
  }
  Async<Machine> describe(std::string id, CancelToken token) override {
    RILLE_CO_CHECK(co_await once(before_describe));
    RILLE_CO_TRY(Machine found, co_await local_->describe(std::move(id), std::move(token)));
    found = shown(std::move(found));
    if (described) described();
    co_return found;
  }
  Async<std::vector<Machine>> list(std::string tag, CancelToken token) override {
    RILLE_CO_TRY(std::vector<Machine> found, co_await local_->list(std::move(tag), std::move(token)));
    for (Machine& m : found) m = shown(std::move(m));
    co_return found;
  }
  Async<> terminate(std::string id, CancelToken token) override {
    ++terminates;
    return local_->terminate(std::move(id), std::move(token));
  }
  Async<Machine> resize(std::string id, std::string type, CancelToken token) override {
    ++resizes;
    still_ = true;
    RILLE_CO_CHECK(co_await once(while_still));
    still_ = false;
    type_ = std::move(type);
    co_return co_await describe(std::move(id), std::move(token));
  }

 private:
  static Async<> once(Hook& hook) { return call(std::exchange(hook, nullptr)); }
  static Async<> call(Hook hook) {
    if (hook) RILLE_CO_CHECK(co_await hook());
    co_return success();
  }
  // As a cloud shows one that is stopped: it may as well be ending.
  Machine shown(Machine m) const {
    m.details.set("type", type_);
    if (still_ && m.state == MachineState::live) m.state = MachineState::terminating;
    return m;
  }

  std::unique_ptr<provider::Provider> local_;
  std::string name_ = "resizable", type_ = "small";
  bool still_ = false;
};

// A run with a box, a fiber that resizes it, and another that calls something there once `begin` says so.
struct Race {
  TempDir dir;
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::unique_ptr<store::Journal> journal = store::Journal::open(*loop, dir.path + "/journal.db").value();
  provider::Registry registry;
  Resizable* cloud = nullptr;
  std::unique_ptr<lease::Manager> leases;
  std::unique_ptr<RunImpl> run;
  std::unique_ptr<CppGuest> guest;
  Future<bool> begin{*loop};
  std::optional<Result<Value>> resized, called;
  std::optional<LeaseView> box;                  // in the end
  int creates = 0, resizes = 0, terminates = 0;  // by then

  Race() {
    auto made = std::make_unique<Resizable>(*loop, dir.path);
    cloud = made.get();
    REQUIRE(registry.add(std::move(made)));
    leases = std::make_unique<lease::Manager>(*loop, *journal, registry, "test");
    REQUIRE(run_blocking(*loop, journal->commit([](store::Db& db) {
      return db.run(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','test','durable','running',1,'{}',0,0,'h',1)");
    })));
    RunConfig config;
    config.id = "r";
    config.home = dir.path + "/runs/r";
    config.epoch = 1;
    config.self_exe = AGENT_HELPER;
    config.restarts = call_restarts();
    config.number = run_number(journal->reader(), "r").value();
    auto replay = Replay::load(journal->reader(), "r").value();
    run = std::make_unique<RunImpl>(*loop, std::move(config), journal.get(), leases.get(), std::move(replay));
    guest = std::make_unique<CppGuest>(*run);
  }
  ~Race() {
    journal.reset();
    loop->abandon_tasks();
    run.reset();
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path + "/instances", ec))
      (void)kill_processes({{}, "RILLE_INSTANCE=" + entry.path().string(), true}, 10'000);
  }

  Async<Value> call_there(FiberId fiber, std::string lease) {
    co_await begin;
    CallSpec spec;
    spec.name = "work";
    spec.payload = Value().set("value", 7);
    called.emplace(co_await run->call(fiber, lease, std::move(spec), "test:call"));
    co_return Value();
  }

  // prepare: what is to happen during the resize, once the box is there.
  Async<Value> whole(FiberId fiber, std::function<void()> prepare) {
    Value options = Value().set("provider", "resizable").set("on_loss", "replace");
    RILLE_CO_TRY(LeaseView there, co_await run->rent(fiber, "box", std::move(options), "test:rent"));
    prepare();
    CppGuest::Body caller = [this, id = there.id](FiberId own) { return call_there(own, id); };
    RILLE_CO_TRY(FiberId other, run->spawn(fiber, "caller", guest->function(std::move(caller)), Value()));
    Value large = Value().set("type", "large");
    resized.emplace(co_await run->resize(fiber, there.id, std::move(large), "test:resize"));
    RILLE_CO_CHECK(co_await run->join(fiber, other));
    RILLE_CO_TRY(box, run->lease(there.id));
    creates = cloud->creates, resizes = cloud->resizes, terminates = cloud->terminates;
    co_return Value();
  }

  void go(std::function<void()> prepare) {
    CppGuest::Body body = [this, prepare](FiberId fiber) { return whole(fiber, prepare); };
    const FunctionRef main = guest->function(std::move(body));
    std::optional<Result<Value>> out;
    loop->spawn([](Race& race, FunctionRef f, std::optional<Result<Value>>& into) -> Task<void> {
      into.emplace(co_await race.run->execute(*race.guest, f, Value()));
    }(*this, main, out));
    loop->run_until([&] { return out.has_value(); });
    if (!*out) FAIL(out->error().summary());
    REQUIRE(resized);
    REQUIRE(called);
    REQUIRE(box);
  }
};

}  // namespace

TEST_CASE("a call that begins while a resize asks for offers keeps its machine; the resize is refused") {
  Race r;
  Future<bool> looked(*r.loop);
  r.go([&] {
    // The call has begun when it asks where its machine is; only then the offers come.
    r.cloud->before_describe = [&] {
      looked.set(true);
      return at_once();
    };
    r.cloud->before_offers = [&] {
      r.begin.set(true);
      return wait_for(looked);
    };
  });
  REQUIRE_FALSE(*r.resized);
  CHECK(r.resized->error().kind == ErrorKind::state);
  CHECK_THAT(r.resized->error().message, Catch::Contains("a call runs on 'box'"));
  if (!*r.called) FAIL(r.called->error().summary());
  CHECK(r.called->value() == Value(7));
  CHECK(r.resizes == 0);
  CHECK((r.creates == 1 && r.terminates == 0 && r.box->generation == 1));
}

// The call comes after the resize has asked whether anything runs there, and before its row says `resizing`: it finds
// the machine standing still. That is no loss: it goes on there, once that is over.
TEST_CASE("a call that begins while a resize is written down goes on, on the same machine") {
  Race r;
  std::promise<void> may_write;
  std::shared_future<void> written = may_write.get_future().share();
  Future<bool> still(*r.loop), seen(*r.loop);
  Resizable::Hook held = [&] {  // by the call, until the machine stands still
    may_write.set_value();
    return wait_for(still);
  };
  auto begin_later = [&]() -> Task<void> {
    // By then the resize is at the journal; if it were not, it would be refused.
    for (int turn = 0; turn < 200; ++turn) (void)co_await sleep_for(*r.loop, 1);  // its thread jobs need time, too
    r.cloud->before_describe = held;
    r.begin.set(true);
  };
  r.go([&] {
    r.cloud->before_offers = [&] {
      r.journal->enqueue([written](store::Db&) -> Result<> {  // what is queued behind this waits
        written.wait();
        return {};
      });
      r.loop->spawn(begin_later());
      return at_once();
    };
    r.cloud->while_still = [&] {
      still.set(true);
      return wait_for(seen);
    };
    r.cloud->described = [&] { seen.set(true); };
  });
  if (!*r.resized) FAIL(r.resized->error().summary());
  if (!*r.called) FAIL(r.called->error().summary());
  CHECK(r.called->value() == Value(7));
  CHECK(r.resizes == 1);
  CHECK((r.creates == 1 && r.terminates == 0 && r.box->generation == 1));
}
