// `rille offers --list`: the providers' published prices that are compiled in, with their dates. No request is sent.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/fit.hpp"
#include "bindings/cli/offers.hpp"
#include "runtime/workflow/provider/catalogue/list_price.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/nearest.hpp"

namespace rille::cli {

namespace {

using provider::ListedMachine;
using provider::OfferQuery;
using provider::PriceKind;

// The machines that match. Without --spot, machines that have only a spot price in the list come last.
std::vector<ListedMachine> listed_for(const OfferQuery& query) {
  std::vector<ListedMachine> out = provider::listed_machines(query);
  if (query.spot) return out;
  OfferQuery spot = query;
  spot.spot = true;
  for (const ListedMachine& machine : provider::listed_machines(spot))
    if (!machine.price(PriceKind::on_demand)) out.push_back(machine);
  return out;
}

std::string listed_table(const Terminal& terminal, const std::vector<ListedMachine>& machines) {
  std::vector<std::vector<std::string>> rows{
      {"PROVIDER", "OFFER", "GPU", "COUNT", "REGION", "ON DEMAND", "SPOT", "1 YEAR", "3 YEARS", "LIST PRICE OF"}};
  for (const ListedMachine& machine : machines) {
    const provider::ListPrice& row = machine.any();
    rows.push_back({std::string(row.provider), std::string(row.type), std::string(row.gpu),
                    fmt::format("{}", row.gpu_count), row.region.empty() ? "all" : std::string(row.region)});
    for (const PriceKind kind : provider::price_kinds)
      rows.back().push_back(machine.price(kind) ? format_dollars(machine.micros(kind)) : "-");
    rows.back().push_back(machine.dates());
  }
  return fit_table(terminal, std::move(rows), {{"OFFER", 12}, {"REGION", 10}, {"3 YEARS"}, {"1 YEAR"}, {"OFFER"}});
}

// Why the list has nothing, if that can be said.
std::string listed_hint(const OfferQuery& query) {
  if (std::string hint = provider::gpu_hint(query, provider::Asker::command); !hint.empty()) return hint;
  if (query.vcpus > 0 || query.memory_bytes > 0) return "the list knows no machine's CPUs and memory: leave these out";
  return "the list has the usual GPUs of aws, azure, gcp, lambda, runpod and vast: leave a condition out";
}

}  // namespace

Exit print_listed(App& app, const OfferQuery& query, std::size_t limit) {
  std::vector<ListedMachine> machines = listed_for(query);
  const std::size_t matching = machines.size();
  if (limit > 0 && matching > limit) machines.resize(limit);
  if (app.json) {
    Value::Array all;
    for (const ListedMachine& machine : machines) all.push_back(machine.view());
    app.terminal.out(Value(std::move(all)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  app.terminal.out(machines.empty() ? "no list prices match\n" : listed_table(app.terminal, machines));
  if (machines.empty()) app.terminal.note(listed_hint(query));
  else
    app.terminal.note(
        "list prices, in dollars per hour of the machine, as published on that date: today's may differ "
        "(--json names the source of each)");
  if (matching > machines.size())
    app.terminal.note(fmt::format("{} more: --limit 0 shows all", matching - machines.size()));
  return Exit::ok;
}

}  // namespace rille::cli
