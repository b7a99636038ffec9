// `rille offers --history`: prints past spot prices, queried from the providers; a query that failed is shown as a
// row.
#include <fmt/format.h>

#include "bindings/cli/offers.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/price_history.hpp"

namespace rille::cli {

namespace {

Result<Value> history_query(const OffersArguments& a) {
  for (const auto& [option, given] :
       {std::pair("--max-price", a.max_price >= 0), std::pair("--interconnect", !a.interconnect.empty()),
        std::pair("--gpu-memory", !a.gpu_memory.empty()), std::pair("--network", a.network_gbps > 0),
        std::pair("--compliance", !a.compliance.empty()), std::pair("--rank", !a.rank.empty()),
        std::pair("--refresh", a.refresh)})
    if (given)
      return make_error(ErrorKind::invalid, fmt::format("{} cannot be combined with --history", option),
                        "with --history use --gpu --count --vcpus --memory --provider --region --since");
  if (a.regions.size() > 1)
    return make_error(ErrorKind::invalid, "--history takes only one --region",
                      "leave --region out to see all regions that are set up");
  Value v = Value::Object{};
  if (!a.gpu.empty()) v.set("gpu", Value::Array(a.gpu.begin(), a.gpu.end()));
  if (a.count > 0) v.set("count", a.count);
  if (a.vcpus > 0) v.set("vcpus", a.vcpus);
  if (!a.memory.empty()) v.set("memory", a.memory);
  if (!a.regions.empty()) v.set("region", a.regions.front());
  if (!a.providers.empty()) v.set("providers", Value::Array(a.providers.begin(), a.providers.end()));
  return v.set("since", a.since);
}

std::string price_of(const Value& row, const char* which) {
  return format_money(static_cast<Micros>(row.number(which) * 1e6 + 0.5), row.text("currency"));
}

std::string line_of(const Value& row) {
  std::vector<Micros> samples;
  if (const Value::Array* all = row["samples"].as_array())
    for (const Value& s : *all) samples.push_back(static_cast<Micros>(*s.as_number() * 1e6 + 0.5));
  return provider::sparkline(samples);
}

}  // namespace

Exit print_history(App& app, const OffersArguments& a) {
  Result<Value> query = history_query(a);
  if (!query) return fail(app, query.error());
  if (Result<> opened = open_engine(app); !opened) return fail(app, opened.error());
  Result<Value> told = run_blocking(*app.loop, app.engine->leases().queries().price_history(*query, {}));
  if (!told) return fail(app, told.error());
  std::vector<std::vector<std::string>> rows{
      {"PROVIDER", "TYPE", "ZONES", "LOWEST", "MEDIAN", "HIGHEST", "NOW", "SINCE " + a.since}};
  std::vector<Error> errors;
  std::size_t types = 0, shown = 0;
  for (const Value& row : *told->as_array()) {
    if (!row["error"].is_null()) {
      errors.push_back(error_from_value(row));
      errors.back().message = row.text("error");
      rows.push_back({row.text("provider"), "error: " + row.text("error")});
      continue;
    }
    ++types;
    if (a.limit > 0 && shown >= a.limit) continue;
    ++shown;
    rows.push_back({row.text("provider"), row.text("type"), fmt::format("{}", row.integer("zones")),
                    price_of(row, "lowest"), price_of(row, "median"), price_of(row, "highest"), price_of(row, "now"),
                    line_of(row)});
  }
  const bool nothing = types == 0 && !errors.empty();
  const Exit code = nothing ? exit_of(errors.front()) : Exit::ok;
  if (app.json) {
    app.terminal.out(told->to_json_pretty() + "\n");
    return code;
  }
  if (types == 0 && errors.empty())
    app.terminal.out("no provider here tells what such spot machines have cost: aws and alibaba do\n");
  else if (!nothing) app.terminal.out(format_table(rows));
  for (const Error& e : errors) app.terminal.error(e, app.trace);
  if (types > shown) app.terminal.note(fmt::format("{} more: --limit 0 shows all", types - shown));
  return code;
}

}  // namespace rille::cli
