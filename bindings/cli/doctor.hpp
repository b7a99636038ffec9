// What the parts of `rille doctor` share: a row for each check.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"

namespace rille::cli {

struct Check {
  std::string what, state, found, costs;  // state: ok, missing, warning, unknown
};

Value::Array checks_value(const std::vector<Check>& checks);
// `last`: head of `costs`. On a terminal that is too narrow for the table, `costs` stand in a line of their own.
std::string checks_table(const Terminal& terminal, const std::vector<Check>& checks, const std::string& last);

// doctor_provider.cpp: `rille doctor --provider NAME`. `name`: or "all", those of the settings.
Exit check_provider(App& app, const std::string& name);
// The least that the keys of that provider must be allowed.
Exit print_policy(App& app, const std::string& name);

// doctor_live.cpp: `rille doctor --live NAME`
struct LiveArguments {
  std::string provider, gpu = "any";
  double max_cost = 0.5, price = -1;  // dollars, and dollars per hour; -1: as the provider says
  bool spot = false;
};
Exit rent_to_check(App& app, const LiveArguments& arguments);

// doctor_provider.cpp. One that the settings do not name is made without settings. invalid: there is no such
// provider.
Result<std::unique_ptr<provider::Provider>> provider_by_name(App& app, const std::string& name);

}  // namespace rille::cli
