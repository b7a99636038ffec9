// What a LuaHost needs of a run, with one fiber and nothing durable.
#pragma once

#include <atomic>
#include <map>

#include "bindings/host/host.hpp"

namespace rille::test {

class FakeRun final : public engine::RunControl, public engine::Fibers {
 public:
  explicit FakeRun(Loop& loop) : loop_(loop) {
    hooks_.print = [this](std::string_view text) { printed += text; };
  }
  const std::string& id() const override { return id_; }
  engine::Mode mode() const override { return engine::Mode::ephemeral; }
  Loop& loop() override { return loop_; }
  const engine::RunHooks& hooks() const override { return hooks_; }
  std::string home() const override { return "/tmp"; }
  Value args() const override { return args_; }
  Async<Value> execute(Guest& guest, FunctionRef main, Value argument) override {
    Future<bool> done(loop_);
    done_ = done;
    guest_ = &guest;
    guest.start(1, main, argument);
    co_await done;
    co_return std::move(*result_);
  }
  void limit(const engine::RunLimits&) override {}
  bool cancel_waits() const override { return false; }
  void cancel_now() override {}
  void stop_cleanup(Error) override {}
  void cancel(Error reason) override {
    if (reason_) return;
    reason_ = reason;
    loop_.post([this] {
      if (!result_) guest_->cancel(1, *reason_);
    });
  }
  void fiber_done(FiberId, Result<Value> result) override {
    result_.emplace(std::move(result));
    done_->set(true);
  }
  const Error* cancelled(FiberId) const override { return reason_ && !shielded ? &*reason_ : nullptr; }
  std::uint64_t seed(FiberId fiber) const override { return 42 + fiber; }
  std::string path(FiberId) const override { return "main"; }
  void hold_fibers() override {}
  void release_fibers() override {}
  Result<> metric(const agent::Metric&) override { return {}; }
  Result<std::string> pinned(const std::string&, const std::function<Result<std::string>()>& load) override {
    return load();
  }
  engine::ScopeId root_scope(FiberId) const override { return 1; }
  Result<FiberId> spawn(FiberId, std::string, FunctionRef, Value) override { return no(); }
  Async<> join(FiberId, FiberId) override { co_return no(); }
  Async<std::size_t> join_any(FiberId, std::vector<FiberId>, bool) override { co_return no(); }
  void cancel_fiber(FiberId, Error) override {}
  bool ended(FiberId) const override { return true; }
  std::int64_t look_at_clock() override { return -1; }
  engine::ScopeId scope_enter(FiberId, std::string) override { return 2; }
  Async<> scope_settle(FiberId, engine::ScopeId, std::optional<Error>) override {
    shielded = true;
    co_return success();
  }
  Async<> scope_release(FiberId, engine::ScopeId, std::vector<std::string>) override { co_return success(); }
  void scope_leave(FiberId, engine::ScopeId) override { shielded = false; }
  bool replaying() const override { return false; }
  engine::ScopeId entry_enter(FiberId f) override { return scope_enter(f, "entry"); }
  void cancel_scope(engine::ScopeId, Error) override {}
  std::string printed;
  bool shielded = false;

 private:
  static Error no() { return make_error(ErrorKind::state, "not in this test"); }
  Loop& loop_;
  std::string id_ = "fake";
  engine::RunHooks hooks_;
  Value args_;
  Guest* guest_ = nullptr;
  std::optional<Future<bool>> done_;
  std::optional<Result<Value>> result_;
  std::optional<Error> reason_;
};

// One script on one host. `open` may add functions.
struct Script {
  std::unique_ptr<Loop> loop = std::move(Loop::create()).value();
  FakeRun run{*loop};
  std::unique_ptr<host::LuaHost> host;
  std::atomic<host::LuaHost*> running{nullptr};  // for other threads
  host::HostOptions options;

  Script() { options.rules = host::Rules::workflow; }
  Result<Value> operator()(const std::string& source) {
    auto made = host::LuaHost::create(*loop, options);
    if (!made) return made.error();
    host = std::move(made).value();
    running = host.get();
    host->bind(run, run);
    auto main = host->load("test.lua", source);
    if (!main) return main.error();
    return run_blocking(*loop, run.execute(*host, *main, Value()));
  }
};

}  // namespace rille::test
