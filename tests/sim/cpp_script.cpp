#include "tests/sim/cpp_script.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace rille::torture {

using engine::CallSpec;
using engine::LeaseView;
using engine::Operation;
using engine::ScopeId;
using engine::StepOptions;

namespace {

class CppProgram final : public engine::Program {
 public:
  CppProgram(World& world, Run& run, Main make) : guest_(run) {
    main_ = guest_.function(make(Process{world, run, guest_}));
  }
  Guest& guest() override { return guest_; }
  FunctionRef main() override { return main_; }

 private:
  CppGuest guest_;
  FunctionRef main_ = 0;
};

}  // namespace

Script cpp_script(std::string name, std::string result, Main main, std::map<std::string, Main> children) {
  Script s;
  s.name = std::move(name);
  s.result = std::move(result);
  s.load = [main, children = std::move(children)](
               World& world, Loop&, Run& run, const std::string& script) -> Result<std::unique_ptr<engine::Program>> {
    auto child = children.find(std::filesystem::path(script).filename().string());
    std::unique_ptr<engine::Program> made =
        std::make_unique<CppProgram>(world, run, child == children.end() ? main : child->second);
    return made;
  };
  return s;
}

Async<Value> step(Process p, FiberId f, std::string name, Value result, double fails) {
  StepOptions options;
  options.retry.attempts_max = 40;
  Operation op("step", name, result, "torture:" + name);
  RILLE_CO_TRY(engine::StepTicket ticket, co_await p.run.step_begin(f, std::move(op), options));
  const std::string key = p.run.id() + " " + ticket.key;
  if (ticket.recorded) {
    ++p.world.seen["step answered by the record"];
    p.world.body_finished(key);
    co_return std::move(*ticket.recorded);
  }
  while (true) {
    p.world.body_runs(key);
    int times = p.world.effects[key];
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
    p.world.body_finished(key);
    co_return std::move(outcome.result);
  }
}

Async<Value> once(Process p, FiberId f, std::string name, Value result, bool probes) {
  StepOptions options;
  options.effect = engine::Effect::once;
  options.probes = probes;
  Operation op("step", name, result, "torture:" + name);
  RILLE_CO_TRY(engine::StepTicket ticket, co_await p.run.step_begin(f, std::move(op), options));
  const std::string key = p.run.id() + " " + ticket.key;
  if (ticket.recorded) {
    if (*ticket.recorded) p.world.body_finished(key);
    else ++p.world.seen["step uncertain"];
    co_return std::move(*ticket.recorded);
  }
  if (ticket.probe) {
    engine::ProbeAnswer answer;
    if (p.world.effects.contains(key)) answer.done = result;
    ++p.world.seen[answer.done ? "probe found it done" : "probe found nothing"];
    RILLE_CO_TRY(engine::StepOutcome outcome, co_await p.run.step_probed(f, ticket, answer));
    if (!outcome.again) {
      if (outcome.result) p.world.body_finished(key);
      co_return std::move(outcome.result);
    }
  }
  p.world.body_runs(key, true);
  RILLE_CO_TRY(engine::StepOutcome outcome, co_await p.run.step_end(f, ticket, result));
  p.world.body_finished(key);
  co_return std::move(outcome.result);
}

Async<LeaseView> rent(Process p, FiberId f, std::string name, Value options, int tries) {
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

Async<engine::VolumeView> volume(Process p, FiberId f, std::string name, bool keep) {
  Value options;
  options.set("size", "100GB").set("region", "us-east").set("keep", keep);
  for (int i = 1;; ++i) {
    Result<engine::VolumeView> made = co_await p.run.volume(f, name, options, "torture:volume");
    if (made || p.run.cancelled(f) || made.error().kind == ErrorKind::divergence || i == 60) co_return made;
    ++p.world.seen["volume failed: " + std::string(to_string(made.error().kind))];
    p.world.tell("volume " + name + " failed: " + made.error().summary());
    RILLE_CO_CHECK(co_await p.run.sleep(f, "until there is one", 600'000, "torture:sleep"));
  }
}

Async<Value> call(Process p, FiberId f, const LeaseView& box, std::string name, Value sim) {
  CallSpec spec;
  spec.name = std::move(name);
  spec.identity = spec.name;
  spec.sim = std::move(sim);
  co_return co_await p.run.call(f, box.id, std::move(spec), "torture:call");
}

Value sim_of(const char* duration, Value result, const char* every) {
  Value v;
  v.set("duration", duration).set("result", std::move(result));
  if (every) v.set("checkpoint_every", every);
  return v;
}

Async<Value> in_scope(Process p, FiberId f, std::string name, Inner body) {
  Inner nothing;
  co_return co_await in_scope_with(p, f, std::move(name), std::move(body), std::move(nothing));
}

Async<Value> in_scope_with(Process p, FiberId f, std::string name, Inner body, Inner deferred) {
  ScopeId scope = p.run.scope_enter(f, name);
  Result<Value> result = co_await body(f);
  std::optional<Error> failure;
  if (!result) failure = result.error();
  Result<> settled = co_await p.run.scope_settle(f, scope, failure);
  if (!settled && result) result = settled.error();
  if (deferred) {
    Result<Value> done = co_await deferred(f);
    if (!done && result) result = done.error();
  }
  Result<> released = co_await p.run.scope_release(f, scope, {});
  if (!released) ++p.world.seen["scope could not release"];
  p.run.scope_leave(f, scope);
  co_return result;
}

namespace {

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

}  // namespace

Async<Value> work(Process p, FiberId f, std::string name, Value options, Value sim) {
  Inner body = [=](FiberId g) { return work_here(p, g, name, options, sim); };
  co_return co_await in_scope(p, f, name, std::move(body));
}

Value cheap() { return Value().set("gpu", "T4"); }
Value spot() { return Value().set("gpu", "H100:8").set("spot", true); }

}  // namespace rille::torture
