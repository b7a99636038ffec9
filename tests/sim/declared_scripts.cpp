// What the exhaustive test runs besides scripts.cpp: in worlds where nothing is left to chance.
#include <fmt/format.h>

#include "tests/sim/cpp_script.hpp"

namespace rille::torture {

namespace {

using engine::LeaseView;

// Durable work in every part of an unwinding: two scopes that fail, each with something to undo.
CppGuest::Body cleanup(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Inner outer = [p](FiberId g) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await rent(p, g, "outer", cheap()));
      Inner inner = [p](FiberId h) -> Async<Value> {
        RILLE_CO_TRY(LeaseView two, co_await rent(p, h, "inner", cheap()));
        RILLE_CO_CHECK(co_await step(p, h, "half done", Value(1)));
        co_return make_error(ErrorKind::invalid, "on purpose");
      };
      Inner undo = [p](FiberId h) -> Async<Value> {
        RILLE_CO_CHECK(co_await step(p, h, "undo", Value(2)));
        RILLE_CO_CHECK(co_await p.run.sleep(h, "calm down", 60'000, "torture:calm"));
        co_return co_await step(p, h, "undo", Value(3));
      };
      co_return co_await in_scope_with(p, g, "inner", std::move(inner), std::move(undo));
    };
    Inner last = [p](FiberId g) -> Async<Value> {
      RILLE_CO_TRY(LeaseView helper, co_await rent(p, g, "helper", cheap()));  // cleanup may rent, too
      Value sim = sim_of("2m", "tidy");
      RILLE_CO_CHECK(co_await call(p, g, helper, "tidy", sim));
      co_return co_await step(p, g, "report", Value(4));
    };
    Result<Value> failed = co_await in_scope_with(p, f, "outer", std::move(outer), std::move(last));
    if (failed || failed.error().message != "on purpose") co_return failed;
    co_return co_await step(p, f, "end", Value("cleaned up"));
  };
}

// The run itself fails, with a machine of its own and a fiber at work.
CppGuest::Body fails(Process p) {
  return [p](FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await rent(p, f, "box", cheap()));
    CppGuest::Body one = [p](FiberId g) -> Async<Value> {
      Value sim = sim_of("9h", true);
      co_return co_await work(p, g, "long", cheap(), sim);
    };
    RILLE_CO_CHECK(p.run.spawn(f, "child", p.guest.function(std::move(one)), Value()));
    RILLE_CO_CHECK(co_await p.run.sleep(f, "a while", 600'000, "torture:while"));
    RILLE_CO_CHECK(co_await step(p, f, "before", Value(1)));
    co_return make_error(ErrorKind::invalid, "that was not it");
  };
}

CppGuest::Body cancelled_run(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Inner body = [p](FiberId g) -> Async<Value> {
      RILLE_CO_CHECK(co_await step(p, g, "before", Value(1)));
      Value sim = sim_of("40h", true, "1h");
      co_return co_await work(p, g, "long", cheap(), sim);
    };
    Inner undo = [p](FiberId g) -> Async<Value> { co_return co_await step(p, g, "undo", Value(2)); };
    co_return co_await in_scope_with(p, f, "cancelled", std::move(body), std::move(undo));
  };
}

// One payment, whether a probe or a person finds out what became of it.
CppGuest::Body once_only(Process p) {
  return [p](FiberId f) -> Async<Value> {
    RILLE_CO_CHECK(co_await once(p, f, "pay", Value("paid"), true));
    Result<Value> sent = co_await once(p, f, "send", Value("sent"), false);
    if (!sent) {
      if (sent.error().code != "step_uncertain") co_return sent;
      const bool there = p.world.effects.contains(p.run.id() + " main/send#1");
      RILLE_CO_TRY(Value found, co_await step(p, f, "look", Value(there)));
      if (found.to_json() == "false") RILLE_CO_CHECK(co_await once(p, f, "send after all", Value("sent"), true));
    }
    int letters = 0;
    for (const auto& [key, times] : p.world.effects)
      if (key.find("send") != std::string::npos) letters += times;
    if (letters != 1) p.world.wrong = fmt::format("{} letters were sent", letters);
    co_return co_await step(p, f, "end", Value("paid and sent once"));
  };
}

// A resumed fiber is where its record puts it, but takes a permit again before its next effect; so bodies are counted.
Async<Value> ask(Process p, FiberId f) {
  engine::StepOptions options;
  engine::Operation op("step", "ask", Value(), "torture:ask");
  RILLE_CO_TRY(engine::StepTicket ticket, co_await p.run.step_begin(f, std::move(op), options));
  const std::string key = p.run.id() + " " + ticket.key;
  if (!ticket.recorded) {
    p.world.body_runs(key);
    if (++p.world.inside["api"] > 2) p.world.wrong = "three work in a pool of two";
    Result<> worked = co_await sleep_for(p.run.loop(), 2'000);
    --p.world.inside["api"];
    Result<Value> body = worked ? Result<Value>(Value(1)) : Result<Value>(worked.error());
    RILLE_CO_TRY(engine::StepOutcome outcome, co_await p.run.step_end(f, ticket, body));
    ticket.recorded.emplace(std::move(outcome.result));
  }
  p.world.body_finished(key);
  co_return std::move(*ticket.recorded);
}

CppGuest::Body pools(Process p) {
  return [p](FiberId f) -> Async<Value> {
    std::vector<FiberId> children;
    for (int i = 1; i <= 4; ++i) {
      CppGuest::Body one = [p](FiberId g) -> Async<Value> {
        engine::PoolSpec pool;
        pool.name = "api";
        pool.slots = 2;
        pool.rate = 3;
        pool.per_ms = 20'000;
        RILLE_CO_TRY(std::string permit, co_await p.run.pool_enter(g, pool, "torture:pool"));
        Result<Value> first = co_await ask(p, g);
        Result<Value> second = first;
        if (first) second = co_await ask(p, g);
        p.run.pool_leave(g, "api", permit);
        co_return second;
      };
      RILLE_CO_TRY(FiberId child, p.run.spawn(f, "asker", p.guest.function(std::move(one)), Value()));
      children.push_back(child);
    }
    for (FiberId child : children) RILLE_CO_CHECK(co_await p.run.join(f, child));
    co_return co_await step(p, f, "end", Value("eight answers"));
  };
}

CppGuest::Body signals(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Value nobody("nobody"), never("never");
    RILLE_CO_TRY(Value a, co_await p.run.signal(f, "approve", 1'800'000, nobody, "torture:approve"));
    RILLE_CO_CHECK(co_await step(p, f, "first", a));
    RILLE_CO_TRY(Value b, co_await p.run.signal(f, "go", 86'400'000, never, "torture:go"));
    RILLE_CO_CHECK(co_await step(p, f, "second", b));
    co_return Value(fmt::format("{} {}", a.to_json(), b.to_json()));
  };
}

CppGuest::Body child(Process p) {
  return [p](FiberId f) -> Async<Value> {
    Value sim = sim_of("20m", 7);
    RILLE_CO_TRY(Value v, co_await work(p, f, "evaluate", cheap(), sim));
    co_return co_await step(p, f, "score", v);
  };
}

CppGuest::Body failing_child(Process p) {
  return [p](FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await rent(p, f, "box", cheap()));
    co_return make_error(ErrorKind::quota, "no more seats");
  };
}

// Two children beside each other, and one that fails.
CppGuest::Body children(Process p) {
  return [p](FiberId f) -> Async<Value> {
    std::vector<FiberId> fibers;
    for (int i = 1; i <= 2; ++i) {
      CppGuest::Body one = [p, i](FiberId g) -> Async<Value> {
        engine::ChildSpec spec;
        spec.script = "child";
        spec.args = Value(i);
        RILLE_CO_TRY(Value v, co_await p.run.child(g, std::move(spec), "torture:child"));
        co_return co_await step(p, g, "keep", v);
      };
      RILLE_CO_TRY(FiberId fiber, p.run.spawn(f, "asker", p.guest.function(std::move(one)), Value()));
      fibers.push_back(fiber);
    }
    for (FiberId fiber : fibers) RILLE_CO_CHECK(co_await p.run.join(f, fiber));
    engine::ChildSpec spec;
    spec.script = "failing child";
    Result<Value> failed = co_await p.run.child(f, std::move(spec), "torture:failing");
    if (failed || failed.error().kind != ErrorKind::quota) co_return failed;
    co_return co_await step(p, f, "end", Value("two, and one failed"));
  };
}

}  // namespace

const std::vector<Script>& declared_scripts() {
  static const std::vector<Script> all = [] {
    std::vector<Script> s = scripts();
    s.push_back(cpp_script("cleanup", R"("cleaned up")", cleanup));
    s.push_back(cpp_script("fails", "error invalid: that was not it", fails));
    s.push_back(cpp_script("cancelled-run", "error cancelled: by hand", cancelled_run));
    s.back().cancel_ms = 5 * 3'600'000;
    s.back().steps_vary = true;  // a person does not wait until it has come so far again
    s.push_back(cpp_script("once", R"("paid and sent once")", once_only));
    s.back().steps_vary = true;  // what is uncertain is looked at
    s.push_back(cpp_script("pools", R"("eight answers")", pools));
    s.push_back(cpp_script("signals", R"("\"nobody\" {\"by\":\"a person\"}")", signals));
    s.back().prepare = [](World& w) { w.send_signal(7'200'000, "go", "{\"by\":\"a person\"}"); };
    s.push_back(cpp_script("children", R"("two, and one failed")", children,
                           {{"child", child}, {"failing child", failing_child}}));
    return s;
  }();
  return all;
}

}  // namespace rille::torture
