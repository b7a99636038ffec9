// `rille cost` and `rille budget`: what machines cost, read from the journal only.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bindings/cli/command.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

std::string shown(const lease::Price& price) { return price.micros < 0 ? "unknown" : price.shown(); }

struct Sum {
  lease::Amounts money;
  std::int64_t lived_us = 0, starting_us = 0, idle_us = 0, machines = 0, volumes = 0;
  bool estimate = false, unknown = false;

  // A volume neither starts nor is idle, and is no machine: only its cost counts.
  void add(const lease::Tenure& t, bool volume, std::int64_t now_us) {
    lease::add_to(money, t.costs(now_us));
    if (volume) {
      ++volumes;
    } else {
      lived_us += t.lived_us(now_us);
      starting_us += t.starting_us(now_us);
      idle_us += t.idle_us(now_us);
      ++machines;
    }
    estimate = estimate || !t.reconciled();
    unknown = unknown || t.unknown();
  }
  std::string time(std::int64_t us) const { return machines ? format_duration_ms(us / 1000) : "-"; }
  std::string shown() const { return lease::to_string(money) + (unknown ? " + ?" : ""); }
  std::string_view basis() const { return !machines && !volumes ? "" : estimate ? "estimate" : "billed"; }
  Value to_value() const {
    Value v;
    const auto dollars = money.find("USD");
    const Micros micros = dollars == money.end() ? 0 : dollars->second;
    v.set("cost", static_cast<double>(micros) / 1e6).set("cost_micros", micros).set("machines", machines);
    if (!lease::only_dollars(money)) v.set("costs", lease::to_value(money));
    auto seconds = [](std::int64_t us) { return static_cast<double>(us) / 1e6; };
    v.set("seconds", seconds(lived_us)).set("starting_seconds", seconds(starting_us));
    v.set("idle_seconds", seconds(idle_us)).set("reconciled", !estimate).set("unknown_price", unknown);
    return v;
  }
};

Sum sum_of(const lease::Lease& l, std::int64_t now_us) {
  Sum sum;
  for (const lease::Tenure& t : l.tenures) sum.add(t, lease::is_volume(l), now_us);
  return sum;
}

// Sums costs grouped by `by`: run, tag, month or provider. A machine rented over two months counts in each month with
// that month's share.
std::map<std::string, Sum> grouped(const std::vector<lease::Lease>& leases, const std::string& by, std::int64_t now) {
  std::map<std::string, Sum> out;
  for (const lease::Lease& l : leases)
    for (const lease::Tenure& t : l.tenures) {
      if (by == "month") {
        for (const auto& [month, money] : lease::by_month(t, now)) {
          Sum& sum = out[month];
          lease::add_to(sum.money, money);
          ++(lease::is_volume(l) ? sum.volumes : sum.machines);
          sum.estimate = sum.estimate || !t.reconciled();
          sum.unknown = sum.unknown || t.unknown();
        }
        continue;
      }
      std::string key = by == "run" ? l.run : by == "provider" ? t.provider : l.run_tag;
      out[key].add(t, lease::is_volume(l), now);
    }
  return out;
}

std::string grouped_table(const std::map<std::string, Sum>& groups, const std::string& by) {
  std::string title = by;
  for (char& c : title) c = static_cast<char>(c - 'a' + 'A');
  const bool timed = by != "month";
  std::vector<std::vector<std::string>> rows{{title, "MACHINES"}};
  if (timed) rows[0].insert(rows[0].end(), {"TIME", "STARTING", "IDLE"});
  rows[0].insert(rows[0].end(), {"COST", "BASIS"});
  lease::Amounts total;
  for (const auto& [key, sum] : groups) {
    lease::add_to(total, sum.money);
    rows.push_back({key.empty() ? "-" : key, fmt::format("{}", sum.machines)});
    if (timed)
      rows.back().insert(rows.back().end(), {sum.time(sum.lived_us), sum.time(sum.starting_us), sum.time(sum.idle_us)});
    rows.back().insert(rows.back().end(), {sum.shown(), std::string(sum.basis())});
  }
  rows.push_back({"total", ""});
  if (timed) rows.back().insert(rows.back().end(), {"", "", ""});
  rows.back().insert(rows.back().end(), {lease::to_string(total), ""});
  return format_table(rows);
}

Result<std::vector<lease::Lease>> leases_of(App& app, const std::string& id) {
  if (id.empty()) return app.engine->leases().all(true);
  RILLE_TRY(engine::RunRow run, app.engine->run(id));
  return app.engine->leases().of_run(run.id);
}

struct CostCommand final : Command {
  std::string of_run, by;  // by: "run", "tag", "month" or "provider"; "": not grouped
  bool reconcile = false;
  void declare(Options& o) override {
    o.option("RUN", of_run, "only this run");
    o.option("--by", by, "sums by run, tag, month or provider").among({"run", "tag", "month", "provider"});
    o.flag("--reconcile", reconcile, "ask the providers for their bills first");
  }
  Exit run(App& app) override;
};

Exit CostCommand::run(App& app) {
  if (reconcile) {
    auto settled = run_blocking(*app.loop, app.engine->leases().reconcile({}));
    if (!settled) return fail(app, settled.error());
    app.terminal.note(
        fmt::format("{} machine{} reconciled with the providers' bills", *settled, *settled == 1 ? "" : "s"));
  }
  auto leases = leases_of(app, of_run);
  if (!leases) return fail(app, leases.error());
  const std::int64_t now = app.loop->clock().wall_us();
  if (!by.empty()) {
    std::map<std::string, Sum> groups = grouped(*leases, by, now);
    if (!app.json) {
      app.terminal.out(grouped_table(groups, by));
      return Exit::ok;
    }
    Value::Array out;
    for (const auto& [key, sum] : groups) out.push_back(sum.to_value().set(by, key));
    app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (app.json) {
    Value::Array out;
    for (const auto& l : *leases) out.push_back(l.to_value(now));
    app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  app.terminal.out(cost_table(*leases, now));
  return Exit::ok;
}

const Registered<CostCommand> cost_row({Group::money, "cost", "what runs have cost"});

Exit show_budgets(App& app) {
  auto budgets = app.engine->leases().budgets();
  if (!budgets) return fail(app, budgets.error());
  if (app.json) {
    Value::Array out;
    for (const lease::Money& m : *budgets)
      out.push_back(Value()
                        .set("scope", m.scope)
                        .set("limit_micros", m.limit)
                        .set("spent_micros", m.spent)
                        .set("reserved_micros", m.reserved)
                        .set("leases", m.held));
    app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (budgets->empty()) {
    app.terminal.out("no limits: set one with `rille budget set --month 200`, or `--tag NAME=50`\n");
    return Exit::ok;
  }
  std::vector<std::vector<std::string>> rows{{"BUDGET", "LIMIT", "SPENT", "RESERVED", "LEFT", "LEASES"}};
  for (const lease::Money& m : *budgets)
    rows.push_back({m.scope == "month" ? "month " + lease::month_of(app.loop->clock().wall_us()) : m.scope,
                    format_dollars(m.limit), format_dollars(m.spent), format_dollars(m.reserved),
                    format_dollars(std::max<Micros>(0, m.limit - m.spent - m.reserved)), fmt::format("{}", m.held)});
  app.terminal.out(format_table(rows));
  return Exit::ok;
}

// Reads "200", "$200" or "12.50" as dollars; "none" gives -1, no limit.
Result<Micros> read_limit(const std::string& text) {
  if (text == "none") return Micros{-1};
  std::string digits = text.starts_with("$") ? text.substr(1) : text;
  char* end = nullptr;
  double dollars = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end || !(dollars >= 0))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a limit", text), "dollars, as in 200, or none");
  return micros_from_dollars(dollars);
}

struct BudgetCommand final : Command {
  Exit run(App& app) override { return show_budgets(app); }
};

struct BudgetSetCommand final : Command {
  std::string month, alert_url;   // month: "200", or "none"; "": the limit stays as it is
  std::vector<std::string> tags;  // limits per tag, each "eval=50" (tag, dollars)
  std::int64_t alert_percent = 80;

  void declare(Options& o) override {
    o.option("--month", month, "dollars per month, or none");
    o.option("--tag", tags, "NAME=dollars of all runs with that tag, or NAME=none");
    o.option("--alert", alert_percent, "warn at this percentage; 0: never").between(0, 100);
    o.option("--alert-url", alert_url,
             "also POST the warning to this URL, as JSON; env:NAME: read it from that variable");
  }
  Exit run(App& app) override;
};

Exit BudgetSetCommand::run(App& app) {
  std::vector<lease::Limit> limits;
  auto add = [&](std::string scope, const std::string& amount) -> Result<> {
    lease::Limit l;
    l.scope = std::move(scope);
    RILLE_TRY(l.micros, read_limit(amount));
    l.alert_percent = alert_percent;
    l.alert_url = alert_url;
    limits.push_back(std::move(l));
    return {};
  };
  auto read = [&]() -> Result<> {
    if (!alert_url.empty()) RILLE_CHECK(engine::Alerts::check(alert_url));
    if (!month.empty()) RILLE_CHECK(add("month", month));
    for (const std::string& word : tags) {
      std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        return make_error(ErrorKind::invalid, fmt::format("--tag {}: expected NAME=LIMIT", word), "--tag eval=50");
      RILLE_CHECK(add("tag:" + word.substr(0, equals), word.substr(equals + 1)));
    }
    if (limits.empty())
      return make_error(ErrorKind::invalid, "rille budget set: there is nothing to set",
                        "--month 200, --tag eval=50; none removes a limit");
    return {};
  };
  if (Result<> r = read(); !r) return fail_usage(app, r.error());
  store::Journal::Write write = [limits](store::Db& db) -> Result<> {
    for (const lease::Limit& l : limits) RILLE_CHECK(lease::set_limit(db, l));
    return {};
  };
  if (Result<> r = run_blocking(*app.loop, app.engine->journal().commit(std::move(write))); !r)
    return fail(app, r.error());
  return show_budgets(app);
}

const Registered<BudgetCommand> budget_row({Group::money, "budget",
                                            "the limits of this home, and what is left of them"});
const Registered<BudgetSetCommand> budget_set_row({Group::money, "budget set", "set or remove limits"});

}  // namespace

std::string cost_table(const std::vector<lease::Lease>& leases, std::int64_t now_us) {
  std::vector<std::vector<std::string>> rows{
      {"LEASE", "PROVIDER", "STATE", "TIME", "STARTING", "IDLE", "PER HOUR", "COST"}};
  // leases of several runs may have the same name
  const bool several =
      std::any_of(leases.begin(), leases.end(), [&](const lease::Lease& l) { return l.run != leases[0].run; });
  if (several) rows[0].insert(rows[0].begin(), "RUN");
  Sum total;
  for (const auto& l : leases) {
    Sum sum = sum_of(l, now_us);
    lease::add_to(total.money, sum.money);
    total.unknown = total.unknown || sum.unknown;
    std::string name = sum.machines > 1 ? fmt::format("{} ({} machines)", l.name, sum.machines) : l.name;
    rows.push_back({std::move(name), l.provider, l.state, sum.time(sum.lived_us), sum.time(sum.starting_us),
                    sum.time(sum.idle_us), shown(l.price()), sum.shown()});
    if (several) rows.back().insert(rows.back().begin(), l.run);
  }
  rows.push_back({"total", "", "", "", "", "", "", total.shown()});
  if (several) rows.back().insert(rows.back().begin() + 1, "");
  return format_table(rows);
}

}  // namespace rille::cli
