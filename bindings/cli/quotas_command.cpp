// `rille quotas`: prints the accounts' quotas, as reported by the providers.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"

namespace rille::cli {

namespace {

// Formats the field `key` of the row: "96", "0.5"; "?" if the field is missing.
std::string number(const Value& row, const char* key) {
  const double* n = row[key].as_number();
  return n ? fmt::format("{:g}", *n) : "?";
}

struct QuotasCommand final : Command {
  std::vector<std::string> providers;
  std::string region;
  void declare(Options& o) override {
    o.option("--provider", providers, "only these providers").separated_by_commas();
    o.option("--region", region, "only this region");
  }
  Exit run(App& app) override;
};

Exit QuotasCommand::run(App& app) {
  Value query = Value::Object{};
  if (!providers.empty()) query.set("providers", Value::Array(providers.begin(), providers.end()));
  if (!region.empty()) query.set("region", region);
  const Result<Value> told = run_blocking(*app.loop, app.engine->leases().queries().quotas(std::move(query), {}));
  if (!told) return fail(app, told.error());
  std::vector<std::vector<std::string>> rows{{"PROVIDER", "REGION", "QUOTA", "LIMIT", "USED"}};
  std::vector<Error> errors;
  for (const Value& row : *told->as_array()) {
    if (row["error"].is_null()) {
      rows.push_back(
          {row.text("provider"), row.text("region"), row.text("name"), number(row, "limit"), number(row, "used")});
      continue;
    }
    errors.push_back(error_from_value(row));
    errors.back().message = fmt::format("{}: {}", row.text("provider"), row.text("error"));
  }
  const Exit code = rows.size() == 1 && !errors.empty() ? exit_of(errors.front()) : Exit::ok;
  if (app.json) {
    app.terminal.out(told->to_json_pretty() + "\n");
    return code;
  }
  if (rows.size() > 1) app.terminal.out(format_table(rows));
  else if (errors.empty()) app.terminal.out("none of the providers set up here reports quotas\n");
  for (const Error& e : errors) app.terminal.error(e, app.trace);
  return code;
}

const Registered<QuotasCommand> quotas_row({Group::money, "quotas",
                                            "how much each account may rent, and how much is in use"});

}  // namespace

}  // namespace rille::cli
