// A run's spending limits: rille.budget, the host program's limit, and the alerts.
#include "runtime/workflow/lease/budget.hpp"

#include <fmt/format.h>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/engine/alert_address.hpp"
#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

Result<std::optional<Micros>> dollars(const Value& options, const char* key) {
  const Value& v = options[key];
  if (v.is_null()) return std::optional<Micros>();
  if (!v.as_number() || !(*v.as_number() >= 0))
    return make_error(ErrorKind::invalid, fmt::format("a budget needs {} = a number of dollars, 0 or more", key),
                      fmt::format("rille.budget {{ {} = 5.00 }}", key));
  RILLE_TRY(Micros micros, micros_from_dollars(*v.as_number()));
  return std::optional<Micros>(micros);
}

store::SqlValue or_null(const std::optional<Micros>& micros) {
  return micros ? store::SqlValue(*micros) : store::SqlValue();
}

Result<> check_words(const Value& options) {
  if (const std::string* url = options["alert_url"].as_string()) RILLE_CHECK(Alerts::check(*url));
  for (const char* key : {"tag", "alert_url"})
    if (!options[key].is_null() && (!options[key].as_string() || options.text(key).empty()))
      return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected a string", key, options[key].to_json()));
  const double* alert = options["alert"].as_number();
  if (!options["alert"].is_null() && (!alert || !(*alert > 0 && *alert <= 1)))
    return make_error(ErrorKind::invalid,
                      fmt::format("alert = {}: expected a share of the limit, from 0 to 1", options["alert"].to_json()),
                      "alert = 0.8 warns when 80 % are spent or reserved");
  if (options["limit"].is_null() && options["month"].is_null() && options["tag"].is_null())
    return make_error(ErrorKind::invalid, "a budget needs limit = a number of dollars, 0 or more",
                      "rille.budget { limit = 5.00 }");
  return {};
}

}  // namespace

Result<> RunImpl::set_budget(FiberId id, const Value& options) {
  if (!leases_)
    return make_error(ErrorKind::state, "rille.budget cannot be called inside box:call",
                      "set the budget in the workflow");
  RILLE_CHECK(check_words(options));
  RILLE_TRY(std::optional<Micros> limit, dollars(options, "limit"));
  RILLE_TRY(std::optional<Micros> month, dollars(options, "month"));
  alert_share_ = options.number("alert");
  alert_url_ = options.text("alert_url");
  count_row(alert_url_.size() + options.text("tag").size());
  if (limit && limits_.spend_micros >= 0 && *limit > limits_.spend_micros) {
    const FiberRecord& f = fiber(id);
    if (!replaying() && !replay_.find(f.path, f.next_pos))
      return make_error(ErrorKind::budget,
                        fmt::format("a budget of {} is more than the {} that the host program allows this run",
                                    format_dollars(*limit), format_dollars(limits_.spend_micros)),
                        "lower it, or raise the limit spend_micros");
    limit = limits_.spend_micros;  // an earlier process, whose limit was higher, has accepted this budget
  }
  // The budget takes effect before every later rent, because the journal writes in call order and a rent waits for its
  // row.
  journal_->enqueue(
      [run = config_.id, limit, month, tag = options.text("tag"), url = alert_url_,
       at = now_us()](store::Db& db) -> Result<> {
        RILLE_CHECK(keep_alert_address(db, run, url, at));
        return db.run(
            "UPDATE runs SET budget_micros=COALESCE(?,budget_micros), month_micros=COALESCE(?,month_micros), "
            "tag=CASE WHEN ?='' THEN tag ELSE ? END WHERE id=?",
            {or_null(limit), or_null(month), tag, tag, run});
      },
      fence());
  return journal_->flush();
}

void RunImpl::limit(const RunLimits& limits) {
  limits_ = limits;
  const bool resumed = config_.epoch > 1;
  if (!journal_ || (limits.spend_micros < 0 && !resumed)) return;
  std::optional<Micros> most;
  if (limits.spend_micros >= 0) most = limits.spend_micros;
  // Replaces the limit of an earlier process. The replay sets the script's own budget again before anything is rented.
  journal_->enqueue(
      [run = config_.id, most](store::Db& db) {
        return db.run("UPDATE runs SET budget_micros=? WHERE id=?", {or_null(most), run});
      },
      fence());
}

namespace {

// The alert for a nearly exhausted limit. `when` is part of the alert's key, so that a monthly limit alerts each month.
Alert alert_of(const lease::Money& m, const std::string& run, std::string url, std::string_view when) {
  Alert out;
  out.key = fmt::format("budget:{}:{}:{}", m.scope == "run" ? run : m.scope, m.limit, when);
  out.run = run;
  out.url = std::move(url);
  out.body.set("event", "budget").set("run", run).set("scope", m.scope);
  out.body.set("message", fmt::format("{} of {} of {} are spent or reserved", format_dollars(m.spent + m.reserved),
                                      m.name, format_dollars(m.limit)));
  out.body.set("limit_micros", m.limit).set("spent_micros", m.spent).set("reserved_micros", m.reserved);
  return out;
}

}  // namespace

// Sends due budget alerts; called after each rent. A rent reserves its maximum cost, so only a rent raises spent plus
// reserved money.
void RunImpl::alert_budgets() {
  std::optional<Alert> own;
  if (alert_share_ > 0) {
    auto scopes = leases_->money(config_.id);
    if (scopes && scopes->front().limit >= 0) {
      const lease::Money& m = scopes->front();
      if (static_cast<double>(m.spent + m.reserved) >= alert_share_ * static_cast<double>(m.limit)) {
        alert_share_ = 0;
        own = alert_of(m, config_.id, alert_url_, "");
      }
    }
  }
  auto due = std::make_shared<std::vector<Alert>>();
  store::Journal::Write take = [due, own, run = config_.id, at = now_us()](store::Db& db) -> Result<> {
    due->clear();
    std::vector<Alert> all;
    if (own) all.push_back(*own);
    RILLE_TRY(std::vector<lease::Alert> of_home, lease::take_alerts(db, at));
    for (lease::Alert& a : of_home) all.push_back(alert_of(a.money, run, std::move(a.url), std::to_string(at)));
    for (Alert& one : all) {
      RILLE_TRY(bool is_new, Alerts::add(db, one, at));
      if (is_new) due->push_back(std::move(one));
    }
    return {};
  };
  auto deliver = [this, due](const Result<>& taken) {
    if (!taken) return;
    for (const Alert& told : *due)
      event("warning", Value()
                           .set("what", "budget")
                           .set("scope", told.body.text("scope"))
                           .set("message", told.body.text("message")));
    Alerts* alerts = config_.engine ? config_.engine->alerts() : nullptr;
    if (alerts && !due->empty()) alerts->deliver_soon();
  };
  journal_->commit_then(std::move(take), nullptr, life_.guard(std::move(deliver)));
}

}  // namespace rille::engine
