// `rille plan FILE`: shows the machines that a script would rent, with price and duration, without renting. Rehearses
// the script once without failures, then queries the configured providers' offers for each rent; list prices stand in
// where no live price is known.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "bindings/cli/command.hpp"
#include "bindings/cli/rehearsal.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/catalogue/list_price.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"

namespace rille::cli {

namespace {

struct Line {
  std::string name, provider, offer, region, note;
  std::string list_price_of;  // the date of the list price that stands in for a live one; "": it is live, or invented
  Micros price = 0, reserved = 0, expected = 0;
  Micros rehearsed = 0;  // per hour: what the rehearsal's budget reserved, on spot the most that it may cost
  std::int64_t ttl_ms = 0, asked_ms = 0, used_ms = 0;
  std::optional<Error> refused;  // why the rent would fail: this build cannot use the GPU
};

// The offer's price in dollars per hour; below 0: unknown.
double offer_dollars(const Value& offer) {
  return offer.number(offer["currency"].is_null() ? "price_per_hour" : "dollars_per_hour", -1);
}

void take_offer(const App& app, Line& line, const Value& offer, const Value& wanted) {
  line.provider = offer.text("provider");
  line.offer = offer.text("id");
  line.region = offer.text("region");
  if (const auto read = provider::Offer::from_value(offer))
    line.refused = app.engine->leases().queries().gpu_unusable(wanted, *read);
}

void take_list_price(Line& line, const provider::ListPrice& row, const char* why) {
  line.price = micros_from_dollars(row.dollars).value();
  line.list_price_of = row.date;
  line.note = fmt::format("{}: {}", why, provider::list_price_words(row.date));
}

// Sets the line's offer and price: the cheapest offer of the configured providers; without a live price, the list price
// of their offer, or else of any provider; without that, the simulated cloud's offer, which the line already has.
void set_price(App& app, Line& line, const Value& wanted) {
  auto offers = run_blocking(*app.loop, app.engine->leases().queries().offers(wanted, {}));
  const Value* unpriced = nullptr;
  if (offers)
    for (const Value& o : *offers->as_array()) {
      if (offer_dollars(o) >= 0) {
        take_offer(app, line, o, wanted);
        line.price = micros_from_dollars(offer_dollars(o)).value();
        return;
      }
      if (!unpriced && o["error"].is_null() && o["note"].is_null()) unpriced = &o;
    }
  if (unpriced) {
    const auto offer = provider::Offer::from_value(*unpriced);
    if (const provider::ListPrice* row = offer ? provider::list_price_of(*offer) : nullptr) {
      take_offer(app, line, *unpriced, wanted);
      return take_list_price(line, *row, "its live price is not known");
    }
  }
  const Result<lease::Terms> terms = lease::read_terms(wanted);
  const auto listed = terms ? provider::listed_machines(terms->query) : std::vector<provider::ListedMachine>();
  if (listed.empty()) {
    line.note = "no configured provider has it: the price is the simulated cloud's";
    return;
  }
  const provider::ListPrice& row =
      *listed[0].price(terms->query.spot ? provider::PriceKind::spot : provider::PriceKind::on_demand);
  line.provider = row.provider;
  line.offer = std::string(row.type) + (row.kind == provider::PriceKind::spot ? ":spot" : "");
  line.region = row.region;
  take_list_price(line, row, unpriced ? "its live price is not known" : "no configured provider has it");
}

// One line of the plan.
Line plan_line(App& app, const Rented& r) {
  const lease::Lease& l = r.lease;
  Line line;
  line.name = l.name;
  line.ttl_ms = (l.expires_us - l.created_us) / 1000;
  const Result<lease::Terms> terms = lease::read_terms(r.options);
  line.asked_ms = terms ? terms->ttl_ms : line.ttl_ms;
  line.used_ms = l.live_us ? ((l.released_us ? l.released_us : l.expires_us) - l.live_us) / 1000 : 0;
  line.provider = "sim";
  line.offer = l.request.offer.id;
  line.region = l.request.offer.region;
  line.price = l.price_micros_per_hour;
  line.rehearsed = std::max(l.price_micros_per_hour, l.cap_micros_per_hour);
  Value options = r.options;
  // without a known workload, rank the offers by price
  if (!provider::Workload::resolve(app.home, options)) provider::Workload::leave_out(options);
  set_price(app, line, options);
  line.reserved = cost_micros(line.price, line.ttl_ms);
  line.expected = cost_micros(line.price, line.used_ms);
  return line;
}

// Whether the budget paid for a shorter time than the script asked for.
bool is_cut(const Line& l) { return l.ttl_ms + 1000 <= l.asked_ms; }

Value to_value(const Line& l) {
  Value v;
  v.set("name", l.name).set("provider", l.provider).set("offer", l.offer).set("region", l.region);
  v.set("price_per_hour", static_cast<double>(l.price) / 1e6).set("ttl_seconds", l.ttl_ms / 1000);
  if (is_cut(l)) v.set("asked_ttl_seconds", l.asked_ms / 1000);
  v.set("reserved", static_cast<double>(l.reserved) / 1e6).set("expected", static_cast<double>(l.expected) / 1e6);
  v.set("expected_seconds", l.used_ms / 1000);
  if (!l.list_price_of.empty()) v.set("list_price_of", l.list_price_of);
  if (!l.note.empty()) v.set("note", l.note);
  if (l.refused) v.set("refused", error_to_value(*l.refused));
  return v;
}

// The notes below the table, each once, with the stars that mark its lines.
struct Footnotes {
  std::vector<std::string> notes;
  std::string mark(const std::string& note) {
    if (note.empty()) return "";
    auto at = std::find(notes.begin(), notes.end(), note);
    if (at == notes.end()) at = notes.insert(at, note);
    return " " + std::string(static_cast<std::size_t>(at - notes.begin()) + 1, '*');
  }
};

std::string to_table(const std::vector<Line>& lines) {
  std::vector<std::vector<std::string>> rows{
      {"LEASE", "PROVIDER", "OFFER", "REGION", "PER HOUR", "TTL", "RESERVED", "USED FOR", "COST"}};
  Micros reserved = 0, expected = 0;
  Footnotes footnotes;
  std::string cuts;
  for (const Line& l : lines) {
    reserved += l.reserved;
    expected += l.expected;
    rows.push_back({l.name, l.provider + footnotes.mark(l.note), l.offer, l.region.empty() ? "-" : l.region,
                    format_dollars(l.price), format_duration_ms(l.ttl_ms), shown_sum(l.reserved),
                    format_duration_ms(l.used_ms), shown_sum(l.expected)});
    if (is_cut(l))
      cuts += fmt::format(
          "{}: its TTL is {}, not the {} asked: at {} per hour, as rehearsed, the budget does not pay "
          "for more\n",
          l.name, format_duration_ms(l.ttl_ms), format_duration_ms(l.asked_ms), format_dollars(l.rehearsed));
  }
  rows.push_back({"total", "", "", "", "", "", shown_sum(reserved), "", shown_sum(expected)});
  std::string out = format_table(rows);
  for (std::size_t i = 0; i < footnotes.notes.size(); ++i)
    out += fmt::format("{} {}\n", std::string(i + 1, '*'), footnotes.notes[i]);
  return out + cuts;
}

// The error that ended the rehearsal, with a hint at the calls without a result, which may be why.
Error why_ended(const Outcome& o) {
  Error out = o.result.error();
  if (o.unknown_calls.empty() || !out.hint.empty()) return out;
  out.hint = fmt::format(
      "the result of {} is not known, so it was nil: declare it beside the call, "
      "sim = {{ duration = \"3h\", result = .. }}, or run the script for real once",
      fmt::join(o.unknown_calls, ", "));
  return out;
}

struct PlanCommand final : Command {
  std::string file;
  std::vector<std::string> script_arguments;
  void declare(Options& o) override {
    o.option("FILE", file, "the script; its own options follow").required();
    o.script_words(ScriptWords::mixed, script_arguments);
  }
  Exit run(App& app) override;
};

Exit PlanCommand::run(App& app) {
  ScratchHome home;
  Result<Rehearsal> what = prepare_rehearsal(app, file, script_arguments, home);
  if (!what) return fail_usage(app, what.error());
  what->unknown_calls_end_at_once = true;
  Outcome o = rehearse(*what, provider::sim::Options::calm(1), true);
  if (!o.result && o.rented.empty()) return fail(app, why_ended(o));
  std::vector<Line> lines;
  for (const Rented& r : o.rented) lines.push_back(plan_line(app, r));
  const auto refused = std::find_if(lines.begin(), lines.end(), [](const Line& l) { return l.refused.has_value(); });
  if (app.json) {
    Value::Array list;
    for (const Line& l : lines) list.push_back(to_value(l));
    Value v;
    v.set("leases", std::move(list)).set("complete", o.result.ok());
    if (!o.result) v.set("error", error_to_value(why_ended(o)));
    if (refused != lines.end()) v.set("error", error_to_value(*refused->refused));
    app.terminal.out(v.to_json_pretty() + "\n");
    return refused == lines.end() ? Exit::ok : Exit::script;
  }
  app.terminal.out(lines.empty() ? "the script rents nothing\n" : to_table(lines));
  if (!o.result) {
    app.terminal.note(fmt::format("the script was followed up to here only: {}", why_ended(o).summary()));
  }
  return refused == lines.end() ? Exit::ok : fail(app, *refused->refused);
}

const Registered<PlanCommand> plan_row({Group::run, "plan", "what a script would rent, and what that costs"});

}  // namespace

}  // namespace rille::cli
