// `rille doctor --provider NAME`: whether the provider's keys work, the keys' permissions and age; and the policy
// document.
#include <fmt/format.h>

#include <cmath>

#include "bindings/cli/doctor.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::cli {

namespace {

constexpr std::int64_t day_us = 24LL * 3'600'000'000, key_days_max = 90;

Check of_error(std::string what, const Error& e) { return {std::move(what), "missing", e.message, e.hint}; }

Check key_age(const provider::Identity& who, std::int64_t now_us) {
  if (who.key_made_wall_us == 0) return {"key age", "unknown", who.age_unknown, ""};
  const std::int64_t days = (now_us - who.key_made_wall_us) / day_us;
  const std::string found = fmt::format("{} days, made {}", days, format_utc(who.key_made_wall_us).substr(0, 10));
  if (days <= key_days_max) return {"key age", "ok", found, ""};
  return {
      "key age", "warning", found,
      fmt::format("older than {} days: make a new one, put it where this one is, and delete this one", key_days_max)};
}

Check clock(const provider::Identity& who) {
  if (who.skew_us == 0) return {"clock", "ok", "within two seconds of the provider's", ""};
  return {"clock", "warning",
          fmt::format("the provider's is {} {}", format_duration_ms(std::llabs(who.skew_us) / 1000),
                      who.skew_us > 0 ? "ahead" : "behind"),
          "calls are signed by its clock; set this machine's all the same"};
}

Check dead_man(const provider::Traits& traits) {
  using provider::DeadMan;
  const std::string who(to_string(traits.dead_man));
  switch (traits.dead_man) {
    case DeadMan::provider: return {"dead man", "ok", who + ": the provider ends the machine after its ttl", ""};
    case DeadMan::guest: return {"dead man", "ok", who + ": the machine ends itself at the end of its ttl", ""};
    case DeadMan::credential: return {"dead man", "ok", who + ": what the machine may do ends with its ttl", ""};
    case DeadMan::none: break;
  }
  return {"dead man", "warning", who,
          "nothing ends the machine if the runner never returns: a rent needs `unguarded = true`"};
}

std::string shown_number(double n) { return n == std::floor(n) ? fmt::format("{:.0f}", n) : fmt::format("{:.2f}", n); }

void add_quotas(App& app, provider::Provider& p, std::vector<Check>& checks, Value& json) {
  const auto quotas = run_blocking(*app.loop, p.quotas("", {}));
  if (!quotas && provider::is_lack(quotas.error())) {
    checks.push_back({"quotas", "unknown", quotas.error().message, ""});
    return;
  }
  if (!quotas) {
    checks.push_back({"quotas", "warning", quotas.error().message, quotas.error().hint});
    return;
  }
  Value::Array all;
  for (const provider::Quota& quota : *quotas) {
    const bool nothing = quota.limit <= 0;
    std::string found = shown_number(quota.limit);
    if (quota.used >= 0) found = fmt::format("{} of {} used", shown_number(quota.used), found);
    checks.push_back({fmt::format("quota {}", quota.region), nothing ? "warning" : "ok",
                      fmt::format("{}: {}", quota.name, found), nothing ? "nothing of it: ask for more" : ""});
    all.push_back(quota.to_value());
  }
  json.set("quotas", std::move(all));
}

// Checks a provider without credentials: a query for offers shows whether the provider answers.
void add_offers(App& app, provider::Provider& p, std::vector<Check>& checks) {
  provider::OfferQuery any;
  const auto offers = run_blocking(*app.loop, p.offers(any, {}));
  if (!offers) checks.push_back(of_error("offers", offers.error()));
  else
    checks.push_back({"offers", offers->empty() ? "warning" : "ok", fmt::format("{}", offers->size()),
                      offers->empty() ? "nothing can be rented now" : ""});
}

void add_identity(App& app, const provider::Identity& who, std::vector<Check>& checks) {
  checks.push_back({"credentials", "ok", who.from, ""});
  if (!who.who.empty() || !who.account.empty()) {
    const bool both = !who.who.empty() && !who.account.empty();
    checks.push_back({"identity", "ok", who.who + (both ? ", " : "") + who.account, ""});
  }
  checks.push_back(key_age(who, app.loop->clock().wall_us()));
  checks.push_back(clock(who));
  for (const provider::AskedRegion& reach : who.regions) {
    if (reach.problem) checks.push_back(of_error("region " + reach.region, *reach.problem));
    else checks.push_back({"region " + reach.region, "ok", "answers", ""});
  }
}

std::vector<Check> look_at(App& app, provider::Provider& p, Value& json) {
  std::vector<Check> checks;
  const auto who = run_blocking(*app.loop, p.check({}));
  const bool open = !who && provider::is_lack(who.error());
  if (open) {
    checks.push_back({"credentials", "ok", "none are needed", ""});
    add_offers(app, p, checks);
  } else if (!who) {
    checks.push_back(of_error("credentials", who.error()));
  } else {
    add_identity(app, *who, checks);
    json.set("identity", who->to_value());
    add_quotas(app, p, checks, json);
  }
  checks.push_back(dead_man(p.traits()));
  const auto about = provider::about_provider(p.name());
  if (about) checks.push_back({"verified", "ok", about->verified, ""});
  if (!open) checks.push_back({"policy", "ok", fmt::format("rille doctor --provider {} --policy", p.name()), ""});
  return checks;
}

Exit policy(App& app, const std::vector<std::string>& names) {
  Value::Array json;
  for (const std::string& name : names) {
    const auto about = provider::about_provider(name);
    if (!about) return fail_usage(app, about.error());
    const Result<Value> document = Value::from_json(about->policy);
    json.push_back(Value().set("provider", name).set("policy", document ? *document : Value(about->policy)));
    if (app.json) continue;
    if (names.size() > 1) app.terminal.out("# " + name + "\n");
    app.terminal.out(about->policy);
  }
  if (app.json) app.terminal.out(Value(std::move(json)).to_json_pretty() + "\n");
  return Exit::ok;
}

// Returns the providers to check; for "all": local and all configured ones.
Result<std::vector<std::unique_ptr<provider::Provider>>> chosen(App& app, const std::string& name) {
  std::vector<std::unique_ptr<provider::Provider>> out;
  if (name != "all") {
    RILLE_TRY(auto one, provider_by_name(app, name));
    out.push_back(std::move(one));
    return out;
  }
  RILLE_TRY(auto local, provider_by_name(app, "local"));
  out.push_back(std::move(local));
  const std::string file = providers_file();
  if (file.empty()) return out;
  RILLE_TRY(auto made, provider::make_providers(*app.loop, file, app.home));
  for (auto& one : made) out.push_back(std::move(one));
  return out;
}

}  // namespace

Result<std::unique_ptr<provider::Provider>> provider_by_name(App& app, const std::string& name) {
  if (name == "local") {
    provider::LocalOptions options;
    options.root = app.home;
    return provider::make_local_provider(*app.loop, std::move(options));
  }
  RILLE_CHECK(provider::about_provider(name));
  if (const std::string file = providers_file(); !file.empty()) {
    RILLE_TRY(auto made, provider::make_providers(*app.loop, file, app.home));
    for (auto& one : made)
      if (one->name() == name) return std::move(one);
  }
  return provider::make_provider(name, {*app.loop, app.home, installation_folder(), Value(Value::Object{})});
}

Exit print_policy(App& app, const std::string& name) {
  return policy(app, name == "all" ? provider::provider_names() : std::vector<std::string>{name});
}

Exit check_provider(App& app, const std::string& name) {
  (void)store::make_private_directory(
      installation_folder());  // a provider may be the first that makes it, for its keys
  auto all = chosen(app, name);
  if (!all) return all.error().kind == ErrorKind::invalid ? fail_usage(app, all.error()) : fail(app, all.error());
  bool broken = false;
  Value::Array json;
  std::string text;
  for (const auto& one : *all) {
    Value of_one;
    of_one.set("provider", one->name());
    const std::vector<Check> checks = look_at(app, *one, of_one);
    for (const Check& c : checks) broken = broken || c.state == "missing";
    of_one.set("checks", checks_value(checks));
    json.push_back(std::move(of_one));
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", one->name(),
                        checks_table(app.terminal, checks, "WHAT TO DO"));
  }
  if (app.json) app.terminal.out(Value(std::move(json)).to_json_pretty() + "\n");
  else app.terminal.out(text);
  return broken ? Exit::script : Exit::ok;
}

}  // namespace rille::cli
