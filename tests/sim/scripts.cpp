// What the tortured runs do. Each ends with the same result in every world, whatever goes wrong on the way.
#include <fmt/format.h>

#include "tests/sim/cpp_script.hpp"

namespace rille::torture {

namespace {

using engine::CallSpec;
using engine::LeaseView;

CppGuest::Body retry(Process p) {
  return [p](FiberId f) -> Async<Value> {
    double sum = 0;
    for (int i = 1; i <= 4; ++i) {
      RILLE_CO_TRY(Value v, co_await step(p, f, "flaky", Value(i), 0.4));
      sum += *v.as_number();
      RILLE_CO_CHECK(co_await p.run.sleep(f, "nap", 30'000, "torture:nap"));
    }
    RILLE_CO_TRY(double at, co_await p.run.now(f, "torture:now"));
    RILLE_CO_CHECK(co_await step(p, f, "stamp", Value(at)));  // another time on replay would be divergence
    co_return Value(sum);
  };
}

CppGuest::Body map(Process p) {
  return [p](FiberId f) -> Async<Value> {
    std::vector<FiberId> children;
    for (int i = 1; i <= 3; ++i) {
      CppGuest::Body one = [p, i](FiberId g) -> Async<Value> {
        Value sim = sim_of("20m", i);
        RILLE_CO_TRY(Value v, co_await work(p, g, "item", cheap(), sim));
        co_return co_await step(p, g, "store", v, 0.1);
      };
      RILLE_CO_TRY(FiberId child, p.run.spawn(f, "item", p.guest.function(std::move(one)), Value()));
      children.push_back(child);
    }
    for (FiberId child : children) RILLE_CO_CHECK(co_await p.run.join(f, child));
    co_return co_await step(p, f, "sum", Value(6));
  };
}

CppGuest::Body race(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Inner body = [p](FiberId g) -> Async<Value> {
      std::vector<FiberId> runners;
      for (const char* duration : {"31m", "30m", "5h"}) {
        CppGuest::Body one = [p, duration](FiberId r) -> Async<Value> {
          Value sim = sim_of(duration, true);
          co_return co_await work(p, r, "lap", cheap(), sim);
        };
        RILLE_CO_TRY(FiberId child, p.run.spawn(g, "runner", p.guest.function(std::move(one)), Value()));
        runners.push_back(child);
      }
      RILLE_CO_TRY(std::size_t first, co_await p.run.join_any(g, runners));
      ++p.world.seen[fmt::format("race won by {}", first + 1)];
      for (FiberId r : runners) p.run.cancel_fiber(r, make_error(ErrorKind::cancelled, "another was first"));
      co_return co_await step(p, g, "winner", Value(static_cast<int>(first)));  // another one would be divergence
    };
    RILLE_CO_CHECK(co_await in_scope(p, f, "race", std::move(body)));
    co_return co_await step(p, f, "after", Value("raced"));
  };
}

CppGuest::Body nested(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Inner outer = [p](FiberId g) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await rent(p, g, "outer", cheap()));
      Inner inner = [p](FiberId h) -> Async<Value> {
        RILLE_CO_TRY(LeaseView two, co_await rent(p, h, "inner", cheap()));
        RILLE_CO_CHECK(co_await step(p, h, "prepare", two.name.substr(0, 5)));
        co_return make_error(ErrorKind::invalid, "on purpose");
      };
      Result<Value> failed = co_await in_scope(p, g, "inner", std::move(inner));
      if (p.run.cancelled(g) || failed) co_return failed;
      if (failed.error().message != "on purpose") co_return failed;
      ++p.world.seen["inner scope failed and was caught"];
      co_return co_await step(p, g, "go on", Value("outer goes on"));
    };
    RILLE_CO_TRY(Value v, co_await in_scope(p, f, "outer", std::move(outer)));
    co_return co_await step(p, f, "end", v);
  };
}

CppGuest::Body failover(Process p) {
  return [p](FiberId f) -> Async<Value> {
    for (const char* gpu : {"B200:8", "H200:8", "H100:8", "A100:8", "any"}) {
      Value options;
      options.set("gpu", gpu);
      Result<LeaseView> box = co_await rent(p, f, gpu, options, std::string_view(gpu) == "any" ? 60 : 1);
      if (!box && (p.run.cancelled(f) || box.error().kind == ErrorKind::divergence)) co_return box.error();
      if (!box) {
        ++p.world.seen["failed over"];
        continue;
      }
      Value sim = sim_of("10m", Value());
      Result<Value> done = co_await call(p, f, *box, "train", sim);
      if (!done && done.error().kind == ErrorKind::divergence) co_return done;
      if (done) break;
    }
    co_return co_await step(p, f, "report", Value("trained somewhere"));
  };
}

CppGuest::Body preemption(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Value sim = sim_of("40m", Value().set("loss", 1.25), "10m");
    RILLE_CO_TRY(Value v, co_await work(p, f, "train", spot(), sim));
    co_return co_await step(p, f, "publish", v, 0.2);
  };
}

// One lease, whatever machines: what was staged and installed is on each of them before the call goes on there.
CppGuest::Body replacement(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Inner body = [p](FiberId g) -> Async<Value> {
      Value options = spot().set("on_loss", "replace");
      RILLE_CO_TRY(LeaseView box, co_await rent(p, g, "box", options));
      Value size;
      size.set("sim", Value().set("size", "1GB"));
      RILLE_CO_CHECK(co_await p.run.stage(g, box.id, "https://example.org/corpus", "corpus", size, "torture:stage"));
      CallSpec install;
      install.kind = "exec";
      install.name = install.identity = "install";
      install.setup = true;
      install.sim = sim_of("1m", Value());
      RILLE_CO_CHECK(co_await p.run.call(g, box.id, std::move(install), "torture:install"));
      CallSpec train;
      train.name = train.identity = "train";
      train.sim = sim_of("90m", Value("trained"), "10m");
      train.keep_checkpoints = true;
      Result<Value> done = co_await p.run.call(g, box.id, std::move(train), "torture:call");
      Result<LeaseView> there = p.run.lease(box.id);
      const provider::sim::Box* machine = there ? p.world.sim->cloud.find(there->machine_id) : nullptr;
      if (done && !p.run.replaying() && machine && machine->notice_us && machine->alive(p.world.sim->cloud.now_us()) &&
          p.world.sim->cloud.now_us() >= machine->notice_us)
        ++p.world.seen["a call was done between the notice and the end"];
      co_return done;
    };
    for (int i = 1; i <= 60; ++i) {  // a machine that cannot be had after all is asked for anew, as another lease
      Result<Value> done = co_await in_scope(p, f, "replaced", body);
      if (p.run.cancelled(f) || (!done && done.error().kind == ErrorKind::divergence)) co_return done;
      if (done) co_return co_await step(p, f, "publish", *done, 0.2);
      ++p.world.seen["replacing failed: " + std::string(to_string(done.error().kind))];
      p.world.tell("replacing failed: " + done.error().summary());
    }
    co_return make_error(ErrorKind::internal, "60 leases were not enough");
  };
}

// A call goes on only where all has been set up again.
void replaced_machine(World& world, const Value& e) {
  std::string machine = fmt::format("{}-g{}", e.text("lease"), e.integer("generation"));
  if (e.text("event") == "set_up_again") world.set_up[machine].insert(e.text("what"));
  if (e.text("event") != "call_moved" || e.text("call") != "train") return;
  if (world.set_up[machine].size() == 2) ++world.seen["a moved call found its machine set up"];
  else world.wrong = "a call went on at " + machine + ", which is not set up";
}

CppGuest::Body budget(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Value limit;
    limit.set("limit", 12.0);
    RILLE_CO_CHECK(p.run.set_budget(f, limit));
    Value big = Value().set("gpu", "H100:8");
    Result<LeaseView> one = co_await rent(p, f, "first", big);
    if (!one && one.error().kind != ErrorKind::budget) co_return one.error();
    Result<LeaseView> two = co_await rent(p, f, "second", big);
    if (two) {  // only what the first one does not hold any more
      Result<LeaseView> still = one ? p.run.lease(one->id) : one;
      if (still && still->state != "released" && !p.run.replaying())
        co_return make_error(ErrorKind::internal, "the budget let a second one through");
      ++p.world.seen["the budget was free again"];
    } else {
      if (two.error().kind != ErrorKind::budget) co_return two.error();
      ++p.world.seen["stopped by the budget"];
    }
    co_return co_await step(p, f, "stop", Value("stopped"));
  };
}

// A kept volume and one of a scope, on two machines one after the other, and never on two at a time.
CppGuest::Body volumes(Process p) {
  return [p](FiberId f) -> Async<Value> {
    RILLE_CO_TRY(engine::VolumeView kept, co_await volume(p, f, "data", true));
    for (int i = 1; i <= 2; ++i) {
      Inner body = [p, id = kept.id](FiberId g) -> Async<Value> {
        RILLE_CO_TRY(engine::VolumeView scratch, co_await volume(p, g, "scratch", false));
        Value options = cheap();
        options.set("volumes", Value().set("data", id).set("tmp", scratch.id));
        RILLE_CO_TRY(LeaseView box, co_await rent(p, g, "box", options, 3));
        Value second = cheap();
        second.set("volumes", Value().set("data", id));
        const Result<LeaseView> other = co_await p.run.rent(g, "other", second, "torture:rent");
        if (p.run.cancelled(g) || (!other && other.error().kind == ErrorKind::divergence)) co_return other.error();
        if (!other && other.error().code == "volume_in_use") ++p.world.seen["a volume was in use"];
        Value sim = sim_of("10m", true);
        (void)co_await call(p, g, box, "train", sim);
        co_return Value(true);
      };
      const Result<Value> used = co_await in_scope(p, f, "use", std::move(body));
      if (p.run.cancelled(f) || (!used && used.error().kind == ErrorKind::divergence)) co_return used;
      if (!used) ++p.world.seen["a volume was not used"];  // such as by a machine whose release has failed
    }
    for (int i = 1; i <= 60; ++i) {
      const Result<> deleted = co_await p.run.release(f, kept.id, "torture:delete");
      if (deleted) break;
      if (p.run.cancelled(f) || deleted.error().kind == ErrorKind::divergence) co_return deleted.error();
      ++p.world.seen["a volume was not deleted at once"];
      RILLE_CO_CHECK(co_await p.run.sleep(f, "until it goes", 60'000, "torture:sleep"));
    }
    co_return co_await step(p, f, "end", Value("deleted"));
  };
}

CppGuest::Body child_cancel(Process p) {
  return [p](FiberId f) -> Async<Value> {
    CppGuest::Body one = [p](FiberId g) -> Async<Value> {
      Value sim = sim_of("40h", true);
      co_return co_await work(p, g, "long", spot(), sim);
    };
    RILLE_CO_TRY(FiberId child, p.run.spawn(f, "child", p.guest.function(std::move(one)), Value()));
    RILLE_CO_CHECK(co_await p.run.sleep(f, "a while", 900'000, "torture:while"));
    p.run.cancel_fiber(child, make_error(ErrorKind::cancelled, "not wanted any more"));
    Result<> joined = co_await p.run.join(f, child);
    if (!joined && joined.error().kind == ErrorKind::divergence) co_return joined.error();
    if (!joined && joined.error().kind == ErrorKind::cancelled) ++p.world.seen["a child was cancelled at work"];
    co_return co_await step(p, f, "end", Value("without it"));
  };
}

}  // namespace

const std::vector<Script>& scripts() {
  static const std::vector<Script> all = [] {
    std::vector<Script> s;
    s.push_back(cpp_script("retry", "10", retry));
    s.push_back(cpp_script("map", "6", map));
    s.push_back(cpp_script("race", R"("raced")", race));
    s.push_back(cpp_script("nested", R"("outer goes on")", nested));
    s.push_back(cpp_script("failover", R"("trained somewhere")", failover));
    s.back().cloud = [] {
      provider::sim::Options o = provider::sim::Options::calm(1);
      o.sold_out = {"b200x8", "h200x8", "h100x8@us-east", "h100x8@us-west"};
      return o;
    };
    s.push_back(cpp_script("preemption", R"({"loss":1.25})", preemption));
    s.back().cloud = [] {
      provider::sim::Options o = provider::sim::Options::calm(1);
      o.fates[1] = {25 * 60'000, false};
      o.fates[2] = {15 * 60'000, true};
      return o;
    };
    s.push_back(cpp_script("replacement", R"("trained")", replacement));
    s.back().event = replaced_machine;
    s.back().cloud = [] {
      provider::sim::Options o = provider::sim::Options::calm(1);
      o.fates[1] = {35 * 60'000, false};
      o.fates[2] = {40 * 60'000, true};
      return o;
    };
    s.push_back(cpp_script("budget", R"("stopped")", budget));
    s.push_back(cpp_script("volumes", R"("deleted")", volumes));
    s.push_back(cpp_script("cancel", R"("without it")", child_cancel));
    return s;
  }();
  return all;
}

}  // namespace rille::torture
