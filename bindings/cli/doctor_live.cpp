// `rille doctor --live NAME`: rents the cheapest matching machine for some minutes, tries everything that a rent
// needs, and releases the machine. The command is an ordinary run: the run's budget is the cost limit, and Ctrl-C
// releases the machine. If the command is killed, `rille gc --now RUN` or the lease's ttl ends the machine.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/doctor.hpp"
#include "bindings/cli/session.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::cli {

namespace {

constexpr std::int64_t look_ms = 1'000, list_patience_ms = 30'000;

// The script waits for a signal, which this command sends when the provider's list shows the machine.
constexpr const char* live_script = R"lua(-- Written by `rille doctor --live`: one short rent, with a call.
local rille = require "rille"
local args = rille.args { provider = "local", gpu = "any", max_cost = 0.5, price = -1, spot = false, unguarded = false }
rille.budget { limit = args.max_cost }
local box = rille.rent("doctor", {
  provider = args.provider, gpu = args.gpu, spot = args.spot, unguarded = args.unguarded,
  price = args.price >= 0 and args.price or nil,
  ttl = "15m", min_ttl = "3m", orphan_after = "5m", hold_ttl = "1s", on_loss = "fail",
  gpu_check = false,  -- it is about the provider; the image is the user's
})
rille.signal("listed", { timeout = "10m", default = false })
local told = box:call("hello", { args = 40 }, function(n)
  local function read(path)
    local file = io.open(path)
    local text = file and file:read("*a")
    if file then file:close() end
    return text
  end
  local place = os.getenv("RILLE_INSTANCE")
  return {
    sum = n + 2, machine = place and read(place .. "/machine.json"),
    timer = read("/etc/systemd/system/rille-end.timer") ~= nil,
  }
end)
box:release()
return told
)lua";

struct Step {
  std::string name, found;
  bool ok = true;
  double seconds = 0;
};

struct Live {
  App& app;
  provider::Provider& from;
  Session session;
  std::vector<Step> steps;
  std::string lease, tag;  // lease id and provider tag of the rented machine
  std::int64_t last_ns = 0;

  Live(App& a, provider::Provider& p) : app(a), from(p), session(a), last_ns(a.loop->clock().monotonic_ns()) {}

  void step(std::string name, bool ok, std::string found) {
    const std::int64_t now_ns = app.loop->clock().monotonic_ns();
    steps.push_back({std::move(name), std::move(found), ok, static_cast<double>(now_ns - last_ns) / 1e9});
    last_ns = now_ns;
    const Step& s = steps.back();
    if (app.json) return;
    app.terminal.clear_progress();
    app.terminal.out(fmt::format("{:<12} {:<7} {:>6.1f} s  {}\n", s.name, s.ok ? "ok" : "FAILED", s.seconds, s.found));
  }
  bool all_ok() const {
    return std::all_of(steps.begin(), steps.end(), [](const Step& s) { return s.ok; });
  }
};

// Checks that the provider accepts the credentials, before the script rents anything.
bool credentials_work(Live& live) {
  const auto who = run_blocking(*live.app.loop, live.from.check({}));
  if (who) live.step("credentials", true, who->who.empty() ? who->from : who->who + ", from " + who->from);
  else if (provider::is_lack(who.error())) live.step("credentials", true, "none are needed");
  else live.step("credentials", false, who.error().message);
  return live.steps.back().ok;
}

// Waits until the provider's list shows the machine's tag; then signals the script to continue.
Task<void> see_listed(Live& live, std::string run, std::string machine, std::string tag) {
  const provider::Traits& traits = live.from.traits();
  const std::int64_t ends_ns =
      live.app.loop->clock().monotonic_ns() + (traits.visibility_lag_ms + list_patience_ms) * 1'000'000;
  std::string problem = "it is not in the list";
  bool seen = false;
  while (!seen) {
    const auto all = co_await live.from.list(tag, CancelToken());
    if (!all) problem = all.error().message;
    for (const provider::Machine& m : all ? *all : std::vector<provider::Machine>())
      seen = seen || (m.id == machine && m.tag == tag);
    if (seen || live.app.loop->clock().monotonic_ns() >= ends_ns) break;
    if (!co_await sleep_for(*live.app.loop, look_ms, CancelToken())) break;
  }
  live.step("list", seen, seen ? "the machine bears its tag" : problem);
  (void)co_await live.app.engine->signal(std::move(run), "listed", Value(true));
}

void on_event(Live& live, const Value& e) {
  if (e.text("event") != "live") return;
  live.lease = e.text("id");
  const auto lease = live.app.engine->leases().find(live.lease);
  if (!lease || !*lease) return;
  live.tag = (*lease)->tag;
  const lease::Price price = (*lease)->price();
  live.step("rent", true,
            fmt::format("{} of {}, {}{}", (*lease)->machine_id, live.from.name(),
                        price.micros < 0 ? "at an unknown price" : price.shown() + " per hour",
                        (*lease)->request.offer.spot ? ", spot" : ""));
  live.app.loop->spawn(see_listed(live, (*lease)->run, (*lease)->machine_id, live.tag));
}

void check_dead_man(Live& live, const Value& told) {
  using provider::DeadMan;
  const std::int64_t now_us = live.app.loop->clock().wall_us();
  const Result<Value> machine = Value::from_json(told.text("machine"));
  const std::int64_t ends_us = machine ? machine->integer("expires_wall_us") : 0;
  const DeadMan who = live.from.traits().dead_man;
  const bool knows = ends_us > now_us, own_timer = who == DeadMan::guest && live.from.name() != "local";
  std::string found = knows ? "the machine knows its end: " + format_utc(ends_us) : "the machine does not know its end";
  if (own_timer) found += told.boolean("timer") ? ", and has a timer for it" : ", and has no timer for it";
  if (who == DeadMan::provider) found = "the create call set the machine's end at the provider";
  if (who == DeadMan::none) found += "; but only this installation enforces the ttl";
  live.step("dead man", who == DeadMan::provider || (knows && (!own_timer || told.boolean("timer"))), found);
}

// Checks that the provider lists no resource with the lease's tag, including the tags of earlier machines of the
// lease.
void check_gone(Live& live) {
  const std::string prefix = live.tag.substr(0, live.tag.rfind("-g"));
  auto left = run_blocking(*live.app.loop, live.from.list(prefix, {}));
  if (left) std::erase_if(*left, provider::is_free_left_over);
  if (!left) live.step("gone", false, left.error().message);
  else if (left->empty()) live.step("gone", true, "nothing bears the tag any more");
  else live.step("gone", false, fmt::format("{} still bears the tag", left->front().id));
}

Exit finish_live(Live& live) {
  App& app = live.app;
  const Result<Value>& r = *live.session.result;
  const auto leases = app.engine->leases().of_run(live.session.run->id());
  bool pending = false;
  lease::Amounts costs;
  for (const lease::Lease& l : leases ? *leases : std::vector<lease::Lease>()) {
    pending = pending || l.billable();
    lease::add_to(costs, l.costs(app.loop->clock().wall_us()));
  }
  if (!r) {
    live.step(live.lease.empty() ? "rent" : "call", false, r.error().message);
    if (!r.error().hint.empty() && !app.json) app.terminal.note("hint: " + r.error().hint);
  } else {
    live.step("call", r->integer("sum") == 42, "a function ran there, and its result came back");
    check_dead_man(live, *r);
  }
  if (!live.lease.empty()) {
    live.step("release", !pending, pending ? "it is still rented: rille gc" : "the provider says that it has ended");
    if (!pending) check_gone(live);
  }
  if (app.json) {
    Value::Array steps;
    for (const Step& s : live.steps)
      steps.push_back(Value().set("step", s.name).set("ok", s.ok).set("seconds", s.seconds).set("found", s.found));
    Value out;
    out.set("provider", live.from.name()).set("run", live.session.run->id()).set("ok", live.all_ok());
    out.set("cost", static_cast<double>(costs["USD"]) / 1e6).set("steps", std::move(steps));
    if (costs.size() > 1) out.set("costs", lease::to_value(costs));
    if (!r) out.set("error", error_to_value(r.error()));
    app.terminal.out(out.to_json_pretty() + "\n");
  } else {
    app.terminal.out(fmt::format("{}; it has cost about {}\n", live.all_ok() ? "all is well" : "not all is well",
                                 lease::to_string(costs)));
  }
  if (pending) return Exit::cleanup_pending;
  return !r ? exit_of(r.error()) : live.all_ok() ? Exit::ok : Exit::script;
}

Value input_of(const Live& live, const LiveArguments& arguments) {
  Value out;
  out.set("provider", arguments.provider).set("gpu", arguments.gpu);
  out.set("max_cost", fmt::format("{}", arguments.max_cost)).set("price", fmt::format("{}", arguments.price));
  if (arguments.spot) out.set("spot", true);
  if (live.from.traits().dead_man == provider::DeadMan::none) out.set("unguarded", true);
  return out;
}

}  // namespace

Exit rent_to_check(App& app, const LiveArguments& arguments) {
  if (Result<> r = open_engine(app); !r) return fail(app, r.error());
  const Result<provider::Provider*> found = app.engine->providers().find(arguments.provider);
  if (!found) return fail_usage(app, found.error());
  Live live(app, **found);
  if (!credentials_work(live)) {
    const std::string why = live.steps.back().found;
    return fail(app, make_error(ErrorKind::auth, fmt::format("{}: {}", arguments.provider, why),
                                fmt::format("nothing was rented; see rille doctor --provider {}", arguments.provider)));
  }
  const std::string file = app.home + "/doctor-live.lua";
  if (Result<> r = store::write_file_atomic(file, live_script, 0600); !r) return fail(app, r.error());
  Session& s = live.session;
  engine::RunHooks hooks = session_hooks(s);
  hooks.event = [&live](const Value& e) { on_event(live, e); };
  engine::RunSpec spec;
  spec.script = file;
  spec.args = input_of(live, arguments);
  auto run = run_blocking(*app.loop, app.engine->start(std::move(spec), std::move(hooks)));
  if (!run) return fail(app, run.error());
  s.run = std::move(*run);
  s.log.open(s.run->home() + "/log");
  if (Result<> r = make_host(s, app.home, host::Rules::workflow); !r) return fail(app, r.error());
  const Result<FunctionRef> main = s.host->load_file(file);
  if (!main) return fail(app, main.error());
  const std::string title =
      fmt::format("run {}, at most {}", s.run->id(), format_dollars(static_cast<Micros>(arguments.max_cost * 1e6)));
  return drive(s, *main, app.json ? "" : title, [&live] { return finish_live(live); });
}

}  // namespace rille::cli
