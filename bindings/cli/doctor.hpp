// Shared by the parts of `rille doctor`: one row per check.
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
// `last`: heading of `costs`. If the table is too wide for the terminal, `costs` goes on a separate line.
std::string checks_table(const Terminal& terminal, const std::vector<Check>& checks, const std::string& last);

// doctor_provider.cpp: `rille doctor --provider NAME`. `name`: a provider, or "all" for all configured ones.
Exit check_provider(App& app, const std::string& name);
// Prints the minimal policy for the provider's keys.
Exit print_policy(App& app, const std::string& name);

// doctor_live.cpp: `rille doctor --live NAME`
struct LiveArguments {
  std::string provider, gpu = "any";
  double max_cost = 0.5, price = -1;  // dollars, and dollars per hour; -1: the provider's price
  bool spot = false;
};
Exit rent_to_check(App& app, const LiveArguments& arguments);

// doctor_provider.cpp. A provider missing from the settings is created without settings. invalid: no such provider.
Result<std::unique_ptr<provider::Provider>> provider_by_name(App& app, const std::string& name);

}  // namespace rille::cli
