// What the tortured runs do. Each kind ends with the same result in every world, whatever goes wrong on the way.
#include <fmt/format.h>

#include "tests/sim/world.hpp"

namespace rille::torture {

namespace {

using engine::CallSpec;
using engine::LeaseView;
using engine::Operation;
using engine::ScopeId;
using engine::StepOptions;

// A step whose body is an effect that the world counts. fails: how often an attempt fails.
Async<Value> step(Process p, FiberId f, std::string name, Value result, double fails = 0) {
  StepOptions options;
  options.retry.attempts_max = 40;
  Operation op("step", name, result, "torture:" + name);
  RILLE_CO_TRY(engine::StepTicket ticket, co_await p.run.step_begin(f, std::move(op), options));
  if (ticket.recorded) {
    ++p.world.seen["step answered by the record"];
    co_return std::move(*ticket.recorded);
  }
  while (true) {
    if (p.world.finished.contains(ticket.key)) p.world.wrong = "the finished step " + ticket.key + " ran again";
    int times = ++p.world.effects[ticket.key];
    Result<Value> body = result;
    if (p.world.dice.chance(fails, ticket.key, static_cast<std::uint64_t>(times))) {
      Error e = make_error(ErrorKind::network, "the step's own trouble");
      e.retryable = true;
      body = e;
    }
    RILLE_CO_TRY(engine::StepOutcome outcome, co_await p.run.step_end(f, ticket, body));
    if (outcome.again) {
      ++p.world.seen["step tried again"];
      continue;
    }
    p.world.finished.insert(ticket.key);
    co_return std::move(outcome.result);
  }
}

// A machine, sooner or later: what is refused or lost on the way is asked for again under the next name.
Async<LeaseView> rent(Process p, FiberId f, std::string name, Value options, int tries = 60) {
  for (int i = 1;; ++i) {
    std::string numbered = fmt::format("{}-{}", name, i);
    Result<LeaseView> box = co_await p.run.rent(f, numbered, options, "torture:rent");
    if (box || p.run.cancelled(f) || box.error().kind == ErrorKind::divergence) co_return box;
    ++p.world.seen["rent failed: " + std::string(to_string(box.error().kind))];
    p.world.tell("rent of " + numbered + " failed: " + box.error().summary());
    if (box.error().kind == ErrorKind::budget || i == tries) co_return box;
    RILLE_CO_CHECK(co_await p.run.sleep(f, "until there is more", 1'200'000, "torture:sleep"));
  }
}

Async<Value> call(Process p, FiberId f, const LeaseView& box, std::string name, Value sim) {
  CallSpec spec;
  spec.name = std::move(name);
  spec.identity = spec.name;
  spec.sim = std::move(sim);
  co_return co_await p.run.call(f, box.id, std::move(spec), "torture:call");
}

Value sim_of(const char* duration, Value result, const char* every = nullptr) {
  Value v;
  v.set("duration", duration).set("result", std::move(result));
  if (every) v.set("checkpoint_every", every);
  return v;
}

using Inner = std::function<Async<Value>(FiberId)>;
// A release that fails is the world's trouble and not the script's: whoever comes later tries again.
Async<Value> in_scope(Process p, FiberId f, std::string name, Inner body) {
  ScopeId scope = p.run.scope_enter(f, name);
  Result<Value> result = co_await body(f);
  std::optional<Error> failure;
  if (!result) failure = result.error();
  Result<> settled = co_await p.run.scope_settle(f, scope, failure);
  if (!settled && result) result = settled.error();
  Result<> released = co_await p.run.scope_release(f, scope, {});
  if (!released) ++p.world.seen["scope could not release"];
  p.run.scope_leave(f, scope);
  co_return result;
}

// Rents and calls until the work is done, on however many machines.
Async<Value> work_here(Process p, FiberId f, std::string name, Value options, Value sim) {
  for (int i = 1; i <= 200; ++i) {
    std::string boxes = fmt::format("{}.{}", name, i);
    RILLE_CO_TRY(LeaseView box, co_await rent(p, f, boxes, options));
    Result<Value> done = co_await call(p, f, box, name, sim);
    if (p.run.cancelled(f)) co_return done;
    if (!done && done.error().kind == ErrorKind::divergence) co_return done;
    Result<> released = co_await p.run.release(f, box.id, "torture:release");
    if (p.run.cancelled(f)) co_return released ? done : Result<Value>(released.error());
    if (!released) ++p.world.seen["release failed"];
    if (done) co_return done;
    ++p.world.seen["call lost its machine"];
  }
  co_return make_error(ErrorKind::internal, "200 machines were not enough");
}

Async<Value> work(Process p, FiberId f, std::string name, Value options, Value sim) {
  Inner body = [=](FiberId g) { return work_here(p, g, name, options, sim); };
  co_return co_await in_scope(p, f, name, std::move(body));
}

Value cheap() { return Value().set("gpu", "T4"); }
Value spot() { return Value().set("gpu", "H100:8").set("spot", true); }

// --- the kinds

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

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"retry", retry},           {"map", map},
                                        {"race", race},             {"nested scopes", nested},
                                        {"failover", failover},     {"preemption", preemption},
                                        {"replacement", replacement},
                                        {"budget stop", budget},    {"child cancel", child_cancel}};
  return all;
}

}  // namespace rille::torture
