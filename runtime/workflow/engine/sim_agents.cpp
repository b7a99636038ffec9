#include "runtime/workflow/engine/sim_agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rille::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t boot_ms = 5'000;         // from the machine's state `live` until its agent answers
constexpr std::int64_t bytes_per_ms = 100'000;  // 100 MB/s
constexpr std::int64_t checkpoints_max = 100'000;

Result<std::int64_t> duration_us(const Value& value, const char* what) {
  std::int64_t ms = 0;
  if (const double* seconds = value.as_number()) ms = static_cast<std::int64_t>(*seconds * 1000);
  else if (const std::string* text = value.as_string()) {
    RILLE_TRY(ms, parse_duration_ms(*text));
  } else
    return make_error(ErrorKind::invalid,
                      fmt::format("sim.{} = {}: expected a duration such as \"3h\"", what, value.to_json()));
  if (ms < 0) return make_error(ErrorKind::invalid, fmt::format("sim.{} = {}: expected 0 or more", what, ms));
  return ms * 1000;
}

Error unreachable(const std::string& machine) {
  Error e = make_error(ErrorKind::network, fmt::format("the agent on {} does not answer any more", machine),
                       "its simulated machine has ended; on_loss = \"replace\" in rille.rent goes on with another");
  e.retryable = true;
  return e;
}

}  // namespace

// One connection to a simulated agent. The connection breaks when its machine ends.
class SimAgent final : public agent::AgentClient {
 public:
  SimAgent(Loop& loop, SimAgents& all, std::string machine)
      : loop_(loop), all_(all), machine_(std::move(machine)), stopped_us_(box().stopped_us) {}

  bool broken() const override { return !box().alive(now_us()) || box().stopped_us != stopped_us_; }

  Async<agent::CallStatus> start(agent::StartRequest request, CancelToken token) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "start", false));
    if (token.cancelled()) co_return token.reason();
    if (broken()) co_return unreachable(machine_);
    SimAgents::Call& known = all_.calls_[request.call_key];
    if (request.generation < known.generation || request.epoch < known.epoch)
      co_return make_error(ErrorKind::state,
                           fmt::format("the call is now served by a newer runner, of generation {} and epoch {}",
                                       known.generation, known.epoch),
                           "another process has taken over this run: stop this process");
    known.epoch = request.epoch;
    const bool again = (known.left_us && request.after_attempt) || all_.stopped(known);
    if (known.machine != machine_ || again) {
      RILLE_CO_TRY(SimAgents::Call fresh, all_.plan(request));
      fresh.machine = machine_;
      fresh.started_us = now_us();
      if (again) fresh.begun_with_us = known.told_us;
      if (!known.machine.empty()) begin_with(fresh, known);
      std::int64_t restored = all_.restored_[machine_][fresh.name];
      fresh.begun_with_us = fresh.told_us = std::min(fresh.work_us, std::max(fresh.begun_with_us, restored));
      known = std::move(fresh);
      all_.cloud_.use(machine_, known.end_us());
    }
    agent::CallStatus status;
    status.state = agent::CallState::running;
    status.attempt = 1;
    RILLE_CO_CHECK(co_await all_.place(loop_, "start", true));
    co_return status;
  }

  Async<agent::CallStatus> attach(std::string key, std::int64_t, agent::AttachHandlers handlers,
                                  CancelToken token) override {
    agent::CallStatus status;
    RILLE_CO_CHECK(co_await all_.place(loop_, "attach", false));
    for (bool noticed = false;;) {
      if (token.cancelled()) co_return token.reason();
      auto it = all_.calls_.find(key);
      if (broken()) co_return unreachable(machine_);
      if (it == all_.calls_.end() || it->second.machine != machine_ || all_.stopped(it->second)) co_return status;
      SimAgents::Call& call = it->second;
      tell_checkpoint(call, handlers);
      if (call.left_us) {
        Error left = make_error(ErrorKind::state, "the call stops, because the provider will take its machine away");
        left.code = "preempted";
        status.state = agent::CallState::done;
        status.attempt = 1;
        status.checkpoint = checkpoint_of(call);
        status.result = Result<Value>(std::move(left));
        RILLE_CO_CHECK(co_await all_.place(loop_, "attach", true));
        co_return status;
      }
      if (!noticed && box().told_there && box().notice_us && now_us() >= box().notice_us && handlers.notice) {
        noticed = true;
        handlers.notice(wall_us(box().announced_us));
        continue;
      }
      std::int64_t now = now_us(), end = call.end_us(), limit = call.timeout_us ? call.started_us + call.timeout_us : 0;
      if (limit && limit < end) end = limit;
      if (now >= end) {
        status.state = agent::CallState::done;
        status.attempt = 1;
        status.result = now >= call.end_us() ? Result<Value>(call.result) : Result<Value>(too_long(call));
        RILLE_CO_CHECK(co_await all_.place(loop_, "attach", true));
        co_return status;
      }
      std::int64_t next = end;
      if (call.checkpoint_us) next = std::min(next, now + call.checkpoint_us - done_us(call) % call.checkpoint_us);
      if (std::int64_t lost = box().end_us()) next = std::min(next, lost);
      if (!noticed && box().told_there && box().notice_us > now) next = std::min(next, box().notice_us);
      CancelSource& nap = naps_.insert_or_assign(key, CancelSource(token)).first->second;
      (void)co_await sleep_for(loop_, (next - now + 999) / 1000, nap.token());
    }
  }

  // A call with checkpoints makes one now. With `leave`, it then leaves its machine, unless it finishes before the
  // deadline.
  Async<> preempt(std::string key, std::int64_t deadline_wall_us, bool leave, CancelToken) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "preempt", false));
    if (broken()) co_return unreachable(machine_);
    auto it = all_.calls_.find(key);
    if (it == all_.calls_.end() || it->second.machine != machine_) co_return success();
    SimAgents::Call& call = it->second;
    if (!call.checkpoint_us || call.left_us || now_us() >= call.end_us()) co_return success();
    call.noticed_us = done_us(call);
    if (leave && wall_us(call.end_us()) >= deadline_wall_us) call.left_us = now_us();
    if (auto nap = naps_.find(key); nap != naps_.end())
      nap->second.cancel(make_error(ErrorKind::cancelled, "there is a notice"));
    co_return co_await all_.place(loop_, "preempt", true);
  }

  Async<> forget(std::vector<std::string> keys, std::string, CancelToken) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "forget", false));
    if (broken()) co_return unreachable(machine_);
    for (const std::string& key : keys)
      if (auto it = all_.calls_.find(key); it != all_.calls_.end() && it->second.machine == machine_) {
        all_.drop(it->second);
        all_.calls_.erase(it);
      }
    co_return co_await all_.place(loop_, "forget", true);
  }

  // Describes the machine: its utilization is 1 while any call runs, otherwise 0.
  Async<Value> describe(CancelToken) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "describe", false));
    if (broken()) co_return unreachable(machine_);
    bool busy = false;
    for (const auto& [key, call] : all_.calls_)
      busy = busy || (call.machine == machine_ && !call.left_us && now_us() < call.end_us());
    RILLE_CO_CHECK(co_await all_.place(loop_, "describe", true));
    co_return Value().set("usage", Value().set("utilization", busy ? 1.0 : 0.0));
  }

  Async<agent::Transfer> put(std::string local, std::string remote, agent::TransferProgress,
                             CancelToken token) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "put", false));
    RILLE_CO_TRY(std::int64_t bytes, all_.size_of(local, remote));
    RILLE_CO_TRY(agent::Transfer moved, co_await move(bytes, token));
    if (!all_.home_.empty() && local.starts_with(all_.home_)) restore(local);
    RILLE_CO_CHECK(co_await all_.place(loop_, "put", true));
    co_return moved;
  }

  Async<agent::Transfer> get(std::string remote, std::string local, agent::TransferProgress, CancelToken token,
                             Room) override {
    RILLE_CO_CHECK(co_await all_.place(loop_, "get", false));
    const Learned* before = all_.lesson("get", local);
    std::int64_t bytes = before ? before->result.integer("bytes") : 0;
    RILLE_CO_TRY(agent::Transfer moved, co_await move(bytes, token));
    std::error_code ec;
    if (all_.home_.empty() || !local.starts_with(all_.home_)) {
      RILLE_CO_CHECK(co_await all_.place(loop_, "get", true));
      co_return moved;
    }
    fs::create_directories(local, ec);
    if (ec) co_return errno_error("make", local, ec.value());
    for (const auto& [key, call] : all_.calls_)
      if (call.machine == machine_ && checkpoint_name(call) == remote)
        std::ofstream(fs::path(local) / marker)
            << Value().set("call", call.name).set("done_us", call.told_us).to_json();
    RILLE_CO_CHECK(co_await all_.place(loop_, "get", true));
    co_return moved;
  }

 private:
  const provider::sim::Box& box() const { return *all_.cloud_.find(machine_); }
  std::int64_t now_us() const { return all_.cloud_.now_us(); }
  // Converts a time of the cloud's clock to the runner's wall clock, which differs because a test may set it back.
  std::int64_t wall_us(std::int64_t at_us) const { return at_us - now_us() + loop_.clock().wall_us(); }
  std::int64_t done_us(const SimAgents::Call& call) const {
    return std::min(call.work_us, call.begun_with_us + (call.left_us ? call.left_us : now_us()) - call.started_us);
  }

  static constexpr const char* marker = "simulated.json";
  static std::string checkpoint_name(const SimAgents::Call& call) {
    return call.checkpoint_us ? fmt::format("checkpoints/{}/{:08}", call.name, call.told_us / 1'000'000) : "";
  }
  // A checkpoint's step number is the work done so far, in seconds.
  static Value checkpoint_of(const SimAgents::Call& call) {
    if (call.told_us <= 0) return Value();
    return Value().set("step", call.told_us / 1'000'000).set("directory", checkpoint_name(call));
  }

  // Looks for checkpoints of calls in the staged files.
  void restore(const std::string& local) {
    std::error_code ec;
    for (const auto& entry : fs::recursive_directory_iterator(local, ec)) {
      if (entry.path().filename() != marker) continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      Result<Value> kept = Value::from_json(text.str());
      if (!kept) continue;
      std::int64_t& done = all_.restored_[machine_][kept->text("call")];
      done = std::max(done, kept->integer("done_us"));
    }
  }

  // Lets a call of a lost machine continue from its last checkpoint; work after the checkpoint is repeated.
  void begin_with(SimAgents::Call& fresh, const SimAgents::Call& before) {
    std::int64_t done = before.begun_with_us + all_.work_until_end_us(before);
    std::int64_t kept = before.checkpoint_us ? done - done % before.checkpoint_us : 0;
    fresh.begun_with_us = std::max({kept, before.begun_with_us, fresh.begun_with_us});
    all_.drop(before);
  }

  void tell_checkpoint(SimAgents::Call& call, const agent::AttachHandlers& handlers) {
    if (!call.checkpoint_us) return;
    std::int64_t done = done_us(call), newest = std::max(done - done % call.checkpoint_us, call.noticed_us);
    if (newest <= call.told_us) return;
    call.told_us = newest;
    if (handlers.checkpoint) handlers.checkpoint(checkpoint_of(call));
  }

  static Error too_long(const SimAgents::Call& call) {
    return make_error(ErrorKind::timeout,
                      fmt::format("call '{}' took longer than its timeout of {}", call.name,
                                  format_duration_ms(call.timeout_us / 1000)),
                      "raise the option timeout, or declare a shorter sim.duration");
  }

  Async<agent::Transfer> move(std::int64_t bytes, CancelToken token) {
    if (broken()) co_return unreachable(machine_);
    all_.cloud_.use(machine_, now_us() + (100 + bytes / bytes_per_ms) * 1000);
    RILLE_CO_CHECK(co_await sleep_for(loop_, 100 + bytes / bytes_per_ms, token));
    if (broken()) co_return unreachable(machine_);
    agent::Transfer moved;
    moved.files = 1;
    moved.size_bytes = moved.moved_bytes = bytes;
    co_return moved;
  }

  Loop& loop_;
  SimAgents& all_;
  std::string machine_;
  std::int64_t stopped_us_;  // the machine's last stop when connected; a later stop breaks this connection
  std::map<std::string, CancelSource> naps_;  // call key -> source that ends the wait of the call's attach
};

Async<> SimAgents::place(Loop& loop, const char* request, bool done) {
  if (!gate_ || gate_(request, done)) co_return success();
  Future<Result<>> never(loop);
  co_return co_await never;
}

Async<std::unique_ptr<agent::AgentClient>> SimAgents::connect(Loop& loop, std::string machine_id, CancelToken token) {
  RILLE_CO_CHECK(co_await place(loop, "connect", false));
  const provider::sim::Box* box = cloud_.find(machine_id);
  if (!box || silent_) co_return unreachable(machine_id);
  std::int64_t up_us = box->live_us + boot_ms * 1000;
  if (box->end_us()) up_us = std::min(up_us, box->end_us());
  if (std::int64_t rest_us = up_us - cloud_.now_us(); rest_us > 0)
    RILLE_CO_CHECK(co_await sleep_for(loop, (rest_us + 999) / 1000, token));
  if (!cloud_.find(machine_id)->alive(cloud_.now_us())) co_return unreachable(machine_id);
  RILLE_CO_CHECK(co_await place(loop, "connect", true));
  std::unique_ptr<agent::AgentClient> made = std::make_unique<SimAgent>(loop, *this, std::move(machine_id));
  co_return made;
}

// Whether a resize stopped the machine while the call ran. The call's checkpoints are still on the machine's disk.
bool SimAgents::stopped(const Call& call) const {
  const provider::sim::Box* box = cloud_.find(call.machine);
  return box && box->stopped_us > call.started_us && call.end_us() > box->stopped_us;
}

// The work that the call did on its current machine, until now or until it stopped there, without earlier machines.
std::int64_t SimAgents::work_until_end_us(const Call& call) const {
  const provider::sim::Box* box = cloud_.find(call.machine);
  std::int64_t until = cloud_.now_us();
  if (box && box->end_us()) until = std::min(until, box->end_us());
  if (stopped(call)) until = std::min(until, box->stopped_us);
  if (call.left_us) until = std::min(until, call.left_us);
  return std::clamp<std::int64_t>(until - call.started_us, 0, call.work_us - call.begun_with_us);
}

void SimAgents::drop(const Call& call) {
  std::int64_t done = work_until_end_us(call);
  done_us_ += done;
  if (call.begun_with_us + done >= call.work_us) useful_us_ += call.work_us;
}

std::int64_t SimAgents::lost_work_ms() const {
  SimAgents all = *this;
  for (const auto& [key, call] : calls_) all.drop(call);
  return std::max<std::int64_t>(0, all.done_us_ - all.useful_us_) / 1000;
}

// Plans a call: its duration and result are those declared in `sim`, otherwise those of earlier runs.
Result<SimAgents::Call> SimAgents::plan(const agent::StartRequest& request) {
  const Value &spec = request.spec, &sim = spec["sim"];
  std::string kind = spec.text("kind") == "exec" ? "exec" : "call", name = spec.text("name");
  const Learned* before = lesson(kind, name);
  Call call;
  call.name = name;
  call.generation = request.generation;
  call.epoch = request.epoch;
  call.timeout_us = spec.integer("timeout_ms") * 1000;
  if (!sim["duration"].is_null()) {
    RILLE_TRY(call.work_us, duration_us(sim["duration"], "duration"));
  } else if (before) {
    call.work_us = before->duration_ms * 1000;
  } else if (!unknown_end_) {
    Error e = make_error(
        ErrorKind::config, fmt::format("the duration of {} '{}' is unknown", kind, name),
        fmt::format("declare it, as in box:{}(\"{}\", {{ sim = {{ duration = \"3h\", result = .. }}, .. }}), or "
                    "run the script for real once: its record then provides it",
                    kind, name));
    e.code = "no_simulation";
    return e;
  }
  if (!sim["checkpoint_every"].is_null()) {
    RILLE_TRY(call.checkpoint_us, duration_us(sim["checkpoint_every"], "checkpoint_every"));
    call.checkpoint_us = std::max(call.checkpoint_us, call.work_us / checkpoints_max + 1);
  }
  bool declared = sim.as_object() && sim.as_object()->contains("result");
  if (declared) call.result = sim["result"];
  else if (before) call.result = before->result;
  else if (kind == "exec") call.result = Value().set("code", 0).set("signal", 0).set("output", "");
  else unknown_calls_.insert(fmt::format("{} '{}'", kind, name));
  return call;
}

const Learned* SimAgents::lesson(const std::string& kind, const std::string& name) const {
  auto it = lessons_->find(kind + " " + name);
  return it == lessons_->end() ? nullptr : &it->second;
}

Result<std::int64_t> SimAgents::size_of(const std::string& path, const std::string& remote) const {
  if (auto known = sizes_.find(path); known != sizes_.end()) return known->second;
  std::error_code ec;
  std::int64_t bytes = 0;
  if (fs::is_directory(path, ec)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, ec))
      if (entry.is_regular_file(ec)) bytes += static_cast<std::int64_t>(entry.file_size(ec));
  } else if (fs::exists(path, ec)) {
    bytes = static_cast<std::int64_t>(fs::file_size(path, ec));
  } else if (const Learned* before = lesson("stage", remote)) {
    bytes = before->result.integer("bytes");
  } else if (unknown_end_) {
    return 0;
  } else if (path.find("://") != std::string::npos) {
    return make_error(ErrorKind::config, fmt::format("the size of {} is unknown", path),
                      "declare it: box:stage(from, to, { sim = { size = \"20GB\" } })");
  } else {
    return make_error(ErrorKind::io, fmt::format("cannot stage '{}': there is no such file or folder", path),
                      "check the path; relative ones begin at the folder where rille was started");
  }
  sizes_[path] = bytes;
  return bytes;
}

Result<Lessons> learn(store::Db& journal, const std::string& script) {
  std::map<std::string, std::vector<std::int64_t>> took_ms;
  Lessons out;
  RILLE_CHECK(journal.query(
      "SELECT e.kind,e.name,(e.ended_us-e.started_us)/1000,e.value FROM entries e JOIN runs r ON (e.id>>32)=r.number "
      "WHERE r.script=? AND e.error IS NULL AND e.kind IN ('call','exec','stage','get') ORDER BY e.ended_us",
      {script}, [&](const store::Row& row) {
        std::string what = row.text(0) + " " + row.text(1);
        took_ms[what].push_back(row.integer(2));
        Result<Value> value = Value::from_json(row.text(3));
        out[what].result = value ? std::move(*value) : Value();
      }));
  for (auto& [what, all] : took_ms) {
    auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    out[what].duration_ms = *middle;
  }
  return out;
}

}  // namespace rille::engine
