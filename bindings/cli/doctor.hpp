// Shared by the files of `rille doctor`, which prints a table with one row per check.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"

namespace rille::cli {

struct Check {
  std::string what, state, found, costs;  // state: "ok", "missing", "warning" or "unknown"
};

Value::Array checks_value(const std::vector<Check>& checks);
// Formats the checks; `last` is the heading of the column `costs`. If the table is too wide for the terminal, each
// `costs` text goes on a line below its row.
std::string checks_table(const Terminal& terminal, const std::vector<Check>& checks, const std::string& last);

// Adds a row about the release keys and, if the command runs from a bundle, a row about its files and signature. In
// doctor_bundle.cpp.
void add_bundle(std::vector<Check>& checks);

// Runs `rille doctor --provider NAME`. `name`: a provider, or "all" for all configured ones. In doctor_provider.cpp.
Exit check_provider(App& app, const std::string& name);
// Prints the smallest set of permissions that the provider's keys need.
Exit print_policy(App& app, const std::string& name);

// The arguments of `rille doctor --live NAME`, which is in doctor_live.cpp.
struct LiveArguments {
  std::string provider, gpu = "any";
  // max_cost in dollars; price in dollars per hour, -1: the price that the provider states
  double max_cost = 0.5, price = -1;
  bool spot = false;
};
Exit rent_to_check(App& app, const LiveArguments& arguments);

// Finds a provider; one that is missing from the settings is created with default settings. invalid: Rille has no
// provider with that name. In doctor_provider.cpp.
Result<std::unique_ptr<provider::Provider>> provider_by_name(App& app, const std::string& name);

}  // namespace rille::cli
