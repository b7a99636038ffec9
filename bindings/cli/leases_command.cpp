// `rille leases`: lists the journal's leases. With --all-providers it also lists the machines that the providers
// report with this installation's tag.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::cli {

namespace {

// Returns what ends a machine of the provider if the process that rented it never runs again.
std::string ended_by(const App& app, const std::string& provider) {
  Result<provider::Provider*> p = app.engine->providers().find(provider);
  if (!p) return "?";  // the provider was removed from the settings
  return (*p)->traits().dead_man == provider::DeadMan::none ? "nobody"
                                                            : std::string(provider::to_string((*p)->traits().dead_man));
}

// The price of a lease; for a machine without a lease in the journal, the provider's price in the provider's
// currency.
lease::Price shown_price(const App& app, const lease::Survey::Shown& s) {
  if (s.row) return s.row->price();
  const auto p = app.engine->providers().find(s.provider);
  return {s.machine.price_micros_per_hour, p ? (*p)->traits().currency : "USD"};
}

// A kept volume: no ttl ends it.
bool is_kept_volume(const lease::Lease& l) { return lease::is_kept(l) && l.detached; }

// A detached lease whose dead man's switch fires more than a minute later than the detached lease ends.
bool is_armed_late(const lease::Lease& l) {
  constexpr std::int64_t close_us = 60'000'000;
  return l.detached && l.billable() && !lease::is_volume(l) && l.request.expires_wall_us > l.expires_us + close_us;
}

std::string ended_by(const App& app, const lease::Lease& l) {
  if (lease::is_volume(l)) return "nobody";
  const std::string who = ended_by(app, l.provider);
  return is_armed_late(l) && (who == "provider" || who == "guest") ? "watch" : who;
}

std::string in_time(std::int64_t at_us, std::int64_t now_us) {
  return at_us > now_us ? format_duration_ms((at_us - now_us) / 1000) : "expired";
}

std::string end_of(const lease::Lease& l, std::int64_t ends_us, std::int64_t now_us) {
  if (is_kept_volume(l)) return "kept";
  return lease::is_volume(l) ? "with its scope" : in_time(ends_us, now_us);
}

// A machine, or a disk without its machine, that belongs to no lease of this RILLE_HOME and is not terminating.
bool is_orphan(const lease::Survey::Shown& s) {
  const bool ends = s.machine.state == provider::MachineState::terminating && !provider::is_left_over(s.machine);
  return s.account != lease::Account::own && !ends;
}

Value shown_value(const App& app, const lease::Survey::Shown& s, std::int64_t now_us) {
  Value v;
  v.set("provider", s.provider).set("machine", s.machine.id).set("tag", s.machine.tag);
  v.set("machine_state", provider::to_string(s.machine.state)).set("account", lease::to_string(s.account));
  v.set("ended_by", ended_by(app, s.provider));
  if (s.machine.created_wall_us)
    v.set("created", format_utc(s.machine.created_wall_us))
        .set("age_s", (now_us - s.machine.created_wall_us) / 1'000'000);
  if (s.expires_us) v.set("expires", format_utc(s.expires_us));
  const lease::Price price = shown_price(app, s);
  if (price.currency != "USD") v.set("currency", price.currency);
  if (price.micros >= 0) v.set("price_per_hour", static_cast<double>(price.micros) / 1e6);
  if (s.row) v.set("lease", s.row->id).set("name", s.row->name).set("run", s.row->run).set("state", s.row->state);
  return v;
}

std::string machines_text(const App& app, const lease::Survey& survey, std::int64_t now_us) {
  std::vector<std::vector<std::string>> rows{
      {"LEASE", "NAME", "JOURNAL", "PROVIDER", "MACHINE", "PER HOUR", "AGE", "ENDED BY", "ENDS IN", "RUN"}};
  for (const auto& s : survey.machines) {
    const std::int64_t created_us = s.machine.created_wall_us;
    rows.push_back({s.row ? s.row->id : "-", s.row ? s.row->name : "-",
                    is_orphan(s)                       ? std::string(lease::to_string(s.account))
                    : s.account == lease::Account::own ? s.row->state
                                                       : "ending",
                    s.provider, s.machine.id, shown_price(app, s).shown(),
                    created_us ? format_duration_ms(std::max<std::int64_t>(0, now_us - created_us) / 1000) : "?",
                    ended_by(app, s.provider), s.expires_us ? in_time(s.expires_us, now_us) : "?",
                    s.row ? s.row->run : "-"});
  }
  if (rows.size() == 1)
    return survey.errors.empty() ? "the providers show nothing with the tag of this installation\n"
                                 : "no machine was seen, but not every provider could be asked: there may be some\n";
  return fit_table(app.terminal, std::move(rows),
                   {{"RUN"}, {"AGE"}, {"MACHINE", 12}, {"NAME", 8}, {"PER HOUR"}, {"ENDED BY"}, {"LEASE"}});
}

std::string remarks(const lease::Survey& survey) {
  std::string out;
  bool ends = false;
  for (const auto& s : survey.machines) {
    if (!is_orphan(s)) continue;
    if (s.account == lease::Account::unknown)
      out += fmt::format(
          "machine {0} at {1} is in no journal here. If no other RILLE_HOME holds it, end it with "
          "`rille gc --unknown {0}`\n",
          s.machine.id, s.provider);
    else if (lease::is_found_again(s))
      out += fmt::format("the volume {} ({}) is at {}, which did not show it before: nothing ends it by itself\n",
                         s.row->name, s.machine.id, s.provider);
    else ends = true;
  }
  if (ends) out += "machines marked settled, second or older belong to no lease: `rille gc` ends them\n";
  for (const auto& l : survey.unseen)
    out += fmt::format("{} does not show the machine of {} ({}) of run {}: `rille gc` settles it\n", l.provider, l.name,
                       l.machine_id, l.run);
  for (const Error& e : survey.errors)
    out += fmt::format("could not ask {} for its machines: {}\n{}", e.provider, e.message,
                       e.hint.empty() ? "" : "  hint: " + e.hint + "\n");
  return out;
}

Exit all_providers(App& app) {
  auto survey = run_blocking(*app.loop, app.engine->leases().reaper().survey({}));
  if (!survey) return fail(app, survey.error());
  const std::int64_t now_us = app.loop->clock().wall_us();
  bool orphans = false;
  Value::Array machines, unseen, errors;
  for (const auto& s : survey->machines) {
    orphans = orphans || is_orphan(s);
    machines.push_back(shown_value(app, s, now_us));
  }
  for (const auto& l : survey->unseen) unseen.push_back(l.to_value(now_us));
  for (const Error& e : survey->errors) errors.push_back(error_to_value(e));
  if (app.json)
    app.terminal.out(Value()
                         .set("machines", std::move(machines))
                         .set("unseen", std::move(unseen))
                         .set("errors", std::move(errors))
                         .to_json_pretty() +
                     "\n");
  else app.terminal.out(machines_text(app, *survey, now_us) + remarks(*survey));
  return orphans || !survey->errors.empty() ? Exit::cleanup_pending : Exit::ok;
}

struct LeasesCommand final : Command {
  bool all = false, providers = false;
  void declare(Options& o) override {
    o.flag("--all", all, "also released leases");
    o.flag("--all-providers", providers, "ask the providers; also shows machines that no journal here knows");
  }
  Exit run(App& app) override;
};

Exit LeasesCommand::run(App& app) {
  if (providers) return all_providers(app);
  auto leases = app.engine->leases().all(all);
  if (!leases) return fail(app, leases.error());
  std::int64_t now = app.loop->clock().wall_us();
  if (app.json) {
    Value::Array values;
    for (const auto& l : *leases) {
      Value v = l.to_value(now);
      if (l.billable()) v.set("ended_by", ended_by(app, l));
      if (is_armed_late(l)) v.set("armed_until", format_utc(l.request.expires_wall_us));
      values.push_back(std::move(v));
    }
    app.terminal.out(Value(std::move(values)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (leases->empty()) {
    app.terminal.out("no leases: nothing is rented\n");
    return Exit::ok;
  }
  std::vector<std::vector<std::string>> rows{
      {"LEASE", "NAME", "STATE", "PROVIDER", "MACHINE", "PER HOUR", "SPENT", "ENDS IN", "ENDED BY", "RUN"}};
  for (const auto& l : *leases) {
    Result<std::int64_t> ends = app.engine->leases().reaper().ends_us(l);
    const bool announced = l.state == "live" && l.taken_us > now, over = l.state == "released";
    rows.push_back({l.id, l.name,
                    announced                                          ? "preempting"
                    : l.billable() && l.detached && !is_kept_volume(l) ? "detached"
                                                                       : l.state,
                    l.provider, l.machine_id, l.price().shown(), lease::to_string(l.costs(now)),
                    over ? "" : end_of(l, ends ? *ends : l.expires_us, now), over ? "" : ended_by(app, l), l.run});
  }
  std::string late;
  for (const auto& l : *leases)
    if (ended_by(app, l) == "watch")
      late +=
          fmt::format("{}: `rille watch` or `rille gc` alone ends it then; the {}'s own switch is {} later\n", l.name,
                      ended_by(app, l.provider), format_duration_ms((l.request.expires_wall_us - l.expires_us) / 1000));
  const std::string table = fit_table(
      app.terminal, std::move(rows),
      {{"MACHINE", 12}, {"MACHINE"}, {"RUN"}, {"NAME", 12}, {"SPENT"}, {"PROVIDER"}, {"NAME", 6}, {"ENDED BY"}});
  app.terminal.out(table + late);
  return Exit::ok;
}

const Registered<LeasesCommand> leases_row({Group::money, "leases", "what is rented now"});

}  // namespace

}  // namespace rille::cli
