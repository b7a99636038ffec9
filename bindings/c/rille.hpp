// rille.hpp: Rille inside a C++17 program. Header only, over rille.h, whose rules for threads and limits hold here too.
// Manual: docs/manual/embedding.md.
//
// - Objects own what they name, and are moved, not copied: Runtime, Run, Script, Function, Memory, Completion.
//   A Runtime outlives what was made from it. Any thread may destroy them but the Runtime; what is refused is freed.
// - A call that fails throws rille::Error, with the fields of rille_error.
// - A Value owns its data. Conversions throw `invalid` if the value is of another kind.
// - Host functions are C++ callables. An exception that leaves one is raised in the script: an Error with its fields,
//   another std::exception as `internal`. Exceptions from other callbacks (print, done) end the program.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <rille_values.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rille {
inline namespace cpp {

// The end of a call that a host function suspended. Any thread. One that is dropped unresolved raises `cancelled`.
class Completion {
 public:
  explicit Completion(rille_completion* owned) : completion_(owned) {}
  Completion(Completion&& other) noexcept : completion_(std::exchange(other.completion_, nullptr)) {}
  Completion& operator=(Completion other) noexcept {
    std::swap(completion_, other.completion_);
    return *this;
  }
  ~Completion() {
    if (completion_) rille_completion_reject(completion_, nullptr);
  }
  bool abandoned() const { return !completion_ || rille_completion_abandoned(completion_) != 0; }
  void resolve(const Value& value) {
    Value::Space space;
    const rille_value lent = value.lend(space);
    if (completion_) rille_completion_resolve_value(std::exchange(completion_, nullptr), &lent);
  }
  void reject(const Error& error) {
    rille_error* copy = rille_error_create(error.kind(), error.message().c_str(), error.hint().c_str());
    if (completion_) rille_completion_reject(std::exchange(completion_, nullptr), copy);
    else rille_error_free(copy);
  }

 private:
  rille_completion* completion_;
};

// A call of a host function; valid until the function returns.
class Call {
 public:
  Call(rille_runtime* runtime, rille_call* call) : runtime_(runtime), call_(call) {}
  const char* name() const { return rille_call_name(call_); }
  std::string run_id() const { return rille_call_run_id(call_); }
  std::size_t count() const { return rille_call_count(call_); }
  Value operator[](std::size_t index) const {
    rille_value value{};
    check(rille_call_value(call_, index, &value));
    return Value::from(runtime_, value);
  }
  double number(std::size_t index) const {
    double value = 0;
    check(rille_call_number(call_, index, &value));
    return value;
  }
  std::string text(std::size_t index) const {
    const char* text = nullptr;
    std::size_t length = 0;
    check(rille_call_text(call_, index, &text, &length));
    return std::string(text, length);
  }
  // The fiber waits; what the function returns afterwards is ignored. Where scripts cannot wait, the script gets an
  // error, and the completion has no effect.
  Completion suspend() {
    suspended_ = true;
    return Completion(rille_call_suspend(call_));
  }
  bool suspended() const { return suspended_; }
  rille_runtime* runtime() const { return runtime_; }
  rille_call* get() const { return call_; }

 private:
  rille_runtime* runtime_;
  rille_call* call_;
  bool suspended_ = false;
};

struct HostFunction {
  std::string name;
  rille_effect effect;
  std::function<Value(Call&)> function;
};

struct RunOptions {
  rille_run_options raw;  // limits, grants, rules, module_folder, args_json, jit
  std::function<void(std::string_view)> print, progress, event;
  RunOptions() { rille_run_options_init(&raw, sizeof raw); }
};

namespace detail {

// The callbacks of one run or script. The runtime keeps them while the run is active or has a handle.
struct Wiring {
  RunOptions options;
  std::function<void()> done;
  bool called_later = false;      // they may be called when the handle is gone
  std::atomic<bool> held = true;  // by a Run or a Script, which any thread may destroy

  bool calls_back() const { return options.print || options.progress || options.event; }
  rille_run_options raw() {
    rille_run_options out = options.raw;
    out.payload = this;
    if (options.print)
      out.print = [](const char* t, std::size_t n, void* p) noexcept {
        static_cast<Wiring*>(p)->options.print({t, n});
      };
    if (options.progress)
      out.progress = [](const char* t, std::size_t n, void* p) noexcept {
        static_cast<Wiring*>(p)->options.progress({t, n});
      };
    if (options.event)
      out.event = [](const char* t, std::size_t n, void* p) noexcept {
        static_cast<Wiring*>(p)->options.event({t, n});
      };
    return out;
  }
};

}  // namespace detail

class Run {
 public:
  Run(rille_run* owned, std::shared_ptr<detail::Wiring> wiring) : run_(owned), wiring_(std::move(wiring)) {}
  Run(Run&&) = default;
  Run& operator=(Run&&) = default;
  ~Run() {
    if (wiring_) wiring_->held = false;
  }
  Run& start() {
    const auto ended = [](rille_run*, void* payload) noexcept {
      auto& wiring = *static_cast<detail::Wiring*>(payload);
      wiring.called_later = false;
      if (wiring.done) wiring.done();
    };
    check(rille_run_on_done(run_.get(), ended, wiring_.get()));
    check(rille_run_start(run_.get()));
    wiring_->called_later = true;
    return *this;
  }
  void on_done(std::function<void()> done) { wiring_->done = std::move(done); }  // before start
  void cancel(const std::string& reason = "") { check(rille_run_cancel(run_.get(), reason.c_str())); }
  void wait(std::int64_t timeout_ms = -1) { check(rille_run_wait(run_.get(), timeout_ms)); }
  std::string id() const { return rille_run_id(run_.get()); }
  rille_state state() const { return rille_run_state(run_.get()); }
  std::string result_json() const {
    const char* result = rille_run_result(run_.get(), nullptr);
    return result ? result : "null";
  }
  const rille_error* error() const { return rille_run_error(run_.get()); }  // borrowed; null: not failed, not cancelled
  // Starts, waits, and returns the result as JSON, or throws the run's error.
  std::string to_end() {
    start().wait();
    if (error()) throw Error::copy_of(error());
    return result_json();
  }
  rille_run* get() const { return run_.get(); }

 private:
  detail::Owned<rille_run, rille_run_free> run_;
  std::shared_ptr<detail::Wiring> wiring_;
};

class Script {
 public:
  Script(rille_runtime* runtime, rille_script* owned, std::shared_ptr<detail::Wiring> wiring)
      : runtime_(runtime), script_(owned, [wiring = std::move(wiring)](rille_script* script) {
          rille_script_free(script);  // its calls may still clean up, and print
          wiring->held = false;
        }) {}
  // The script stays as long as one of its functions does.
  Function find(const std::string& name) const {
    rille_script_function function = 0;
    check(rille_script_find(script_.get(), name.c_str(), &function));
    return Function(runtime_, function, script_);
  }
  void cancel(std::uint64_t call, const std::string& reason = "") {
    check(rille_script_cancel(script_.get(), call, reason.c_str()));
  }
  std::int64_t memory_bytes() const { return rille_script_memory_bytes(script_.get()); }

 private:
  rille_runtime* runtime_;
  std::shared_ptr<rille_script> script_;
};

struct Options {
  std::string home, self_exe;  // "": the defaults of rille_options
  std::function<void(rille_log_level, std::string_view)> log;
  bool full_tracebacks = false;
  int runs_max = 0;  // 0: the default
};

class Runtime {
 public:
  explicit Runtime(Options options = {}) : kept_(std::make_unique<Kept>()) {
    kept_->options = std::move(options);
    rille_options raw;
    rille_options_init(&raw, sizeof raw);
    const Options& o = kept_->options;
    if (!o.home.empty()) raw.home = o.home.c_str();
    if (!o.self_exe.empty()) raw.self_exe = o.self_exe.c_str();
    if (o.runs_max > 0) raw.runs_max = o.runs_max;
    raw.full_tracebacks = o.full_tracebacks;
    if (o.log) {
      raw.log_payload = kept_.get();
      raw.log = [](rille_log_level level, const char* line, std::size_t n, void* p) noexcept {
        static_cast<Kept*>(p)->options.log(level, {line, n});
      };
    }
    rille_runtime* made = nullptr;
    check(rille_create(&raw, &made));
    runtime_.reset(made);
  }

  rille_runtime* get() const { return runtime_.get(); }
  int poll_fd() const { return rille_poll_fd(get()); }
  int poll_timeout_ms() { return rille_poll_timeout_ms(get()); }
  bool turn(int budget_ms = 10) {  // whether a run is active
    int busy = 0;
    check(rille_turn(get(), budget_ms, &busy));
    return busy != 0;
  }
  void shutdown(std::int64_t deadline_ms) { check(rille_shutdown(get(), deadline_ms)); }
  void interrupt() { rille_interrupt(get()); }
  void adopt() { check(rille_adopt(get())); }
  void post(std::function<void()> work) {  // any thread
    Posted* posted = kept_->add(std::move(work));
    check(rille_post(
        get(),
        [](void* payload) noexcept {
          Posted& p = *static_cast<Posted*>(payload);
          p.work();
          p.kept->drop(&p);
        },
        posted));
  }

  void register_module(const std::string& name, std::vector<HostFunction> functions) {
    std::vector<rille_function_spec> specs;
    for (HostFunction& f : functions) {
      Registered& kept = kept_->functions.emplace_back(Registered{get(), std::move(f)});
      specs.push_back({sizeof(rille_function_spec), kept.host.name.c_str(), kept.host.effect, &called, &kept});
    }
    rille_error* refused = rille_register_module(get(), name.c_str(), specs.data(), specs.size());
    while (refused && !specs.empty()) kept_->functions.pop_back(), specs.pop_back();
    check(refused);
  }

  Run run(const std::string& name, std::string_view source, RunOptions options = {}) {
    return prepared(std::move(options), [&](const rille_run_options* raw, rille_run** run) {
      return rille_run_from_source(get(), name.c_str(), source.data(), source.size(), raw, run);
    });
  }
  Run run_file(const std::string& path, RunOptions options = {}) {
    return prepared(std::move(options), [&](const rille_run_options* raw, rille_run** run) {
      return rille_run_from_file(get(), path.c_str(), raw, run);
    });
  }
  Run resume(const std::string& id, RunOptions options = {}) {
    return prepared(std::move(options), [&](const rille_run_options* raw, rille_run** run) {
      return rille_run_resume(get(), id.c_str(), raw, run);
    });
  }
  Script script(const std::string& name, std::string_view source, RunOptions options = {}) {
    const auto wiring = wired(std::move(options));
    const rille_run_options raw = wiring->raw();
    rille_script* script = nullptr;
    check(rille_script_load(get(), name.c_str(), source.data(), source.size(), &raw, &script));
    Script made(get(), script, wiring);
    wiring->called_later = wiring->calls_back();
    keep(wiring);
    return made;
  }

  Memory buffer(void* data, std::size_t size, std::function<void()> release = {}) {
    return Memory::buffer(get(), data, size, std::move(release));
  }
  Memory tensor(void* data, const char* dtype, const std::vector<std::int64_t>& shape,
                std::function<void()> release = {}) {
    return Memory::tensor(get(), data, dtype, shape, std::move(release));
  }
  std::string runs_json(int limit) {
    char* json = nullptr;
    check(rille_runs(get(), limit, &json));
    return detail::taken(json);
  }
  std::string leases_json(bool all = false) {
    char* json = nullptr;
    check(rille_leases(get(), all, &json));
    return detail::taken(json);
  }

 private:
  struct Destroy {  // on another thread, or in a callback, it stays
    void operator()(rille_runtime* runtime) const { rille_error_free(rille_destroy(runtime)); }
  };
  struct Registered {
    rille_runtime* runtime;
    HostFunction host;
  };
  struct Kept;
  struct Posted {
    Kept* kept;
    std::function<void()> work;
  };
  struct Kept {
    Options options;
    std::mutex mutex;
    std::list<Posted> posted;  // entries that the runtime has not run are freed with it

    Posted* add(std::function<void()> work) {
      const std::lock_guard<std::mutex> lock(mutex);
      return &posted.emplace_back(Posted{this, std::move(work)});
    }
    void drop(Posted* done) {
      const std::lock_guard<std::mutex> lock(mutex);
      posted.remove_if([done](const Posted& p) { return &p == done; });
    }
    std::deque<Registered> functions;
    std::vector<std::shared_ptr<detail::Wiring>> runs;
  };

  template <class Make>
  Run prepared(RunOptions options, Make make) {
    const auto wiring = wired(std::move(options));
    const rille_run_options raw = wiring->raw();
    rille_run* run = nullptr;
    check(make(&raw, &run));
    Run made(run, wiring);
    keep(wiring);
    return made;
  }

  static std::shared_ptr<detail::Wiring> wired(RunOptions options) {
    auto wiring = std::make_shared<detail::Wiring>();
    wiring->options = std::move(options);
    return wiring;
  }
  void keep(const std::shared_ptr<detail::Wiring>& wiring) {
    auto& runs = kept_->runs;  // removes the entries that no run and no handle uses any more
    runs.erase(std::remove_if(runs.begin(), runs.end(), [](const auto& w) { return !w->called_later && !w->held; }),
               runs.end());
    runs.push_back(wiring);
  }

  static void called(rille_call* raw, void* payload) {
    Registered& kept = *static_cast<Registered*>(payload);
    Call call(kept.runtime, raw);
    try {
      const Value result = kept.host.function(call);
      if (call.suspended()) return;
      Value::Space space;
      const rille_value lent = result.lend(space);
      rille_call_return_value(raw, &lent);
    } catch (const Error& e) {
      rille_call_fail(raw, rille_error_create(e.kind(), e.message().c_str(), e.hint().c_str()));
    } catch (const std::exception& e) {
      rille_call_fail(raw, rille_error_create(RILLE_INTERNAL, e.what(), nullptr));
    } catch (...) { rille_call_fail(raw, rille_error_create(RILLE_INTERNAL, "a C++ exception", nullptr)); }
  }

  std::unique_ptr<Kept> kept_;  // destroyed after the runtime
  std::unique_ptr<rille_runtime, Destroy> runtime_;
};

}  // namespace cpp
}  // namespace rille
