// `rille offers`: lists available offers, from the cache if the cached answers are fresh enough, else from the
// providers (offers_asked.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/cli/offers.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/ask.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/nearest.hpp"

namespace rille::cli {

namespace {

using provider::Offer;
using provider::OfferQuery;
using provider::Rank;
using provider::Workload;

// Reads "CNY=0.14" into {CNY: 0.14}.
Result<Value> read_pairs(const char* option, const std::vector<std::string>& words) {
  Value out = Value::Object{};
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    char* end = nullptr;
    const double number = equals == std::string::npos ? 0 : std::strtod(word.c_str() + equals + 1, &end);
    if (!end || end == word.c_str() + equals + 1 || *end || equals == 0)
      return make_error(ErrorKind::invalid, fmt::format("{} {}: expected NAME=NUMBER", option, word));
    out.set(word.substr(0, equals), number);
  }
  return out;
}

// Turns the arguments into a query. `workload` is set to the workload that ranks the offers, if the arguments name
// one.
Result<OfferQuery> query_of(const App& app, const OffersArguments& a, Workload& workload) {
  Value v = Value::Object{};
  if (!a.gpu.empty()) v.set("gpu", Value::Array(a.gpu.begin(), a.gpu.end()));
  for (const auto& [name, word] : {std::pair("gpu_memory", &a.gpu_memory), std::pair("gpu_vendor", &a.gpu_vendor),
                                   std::pair("disk_kind", &a.disk_kind)})
    if (!word->empty()) v.set(name, *word);
  if (a.count > 0) v.set("count", a.count);
  if (a.spot) v.set("spot", true);
  if (a.max_price >= 0) v.set("max_price", a.max_price);
  if (a.vcpus > 0) v.set("vcpus", a.vcpus);
  if (!a.memory.empty()) v.set("memory", a.memory);
  if (!a.interconnect.empty()) v.set("interconnect", a.interconnect);
  if (a.network_gbps > 0) v.set("network_gbps", a.network_gbps);
  if (!a.rank.empty()) v.set("rank", a.rank);
  for (const auto& [name, list] :
       {std::pair("providers", &a.providers), std::pair("regions", &a.regions), std::pair("compliance", &a.compliance)})
    if (!list->empty()) v.set(name, Value::Array(list->begin(), list->end()));
  RILLE_TRY(Value rates, read_pairs("--rate", a.rates));
  RILLE_TRY(Value tokens, read_pairs("--tokens", a.tokens));
  v.set("rates", std::move(rates)).set("tokens_per_second", std::move(tokens));
  if (!a.workload.empty()) v.set("workload", a.workload);
  if (a.estimated) v.set("estimated", true);
  RILLE_TRY(workload, Workload::resolve(app.home, v));
  return OfferQuery::from_value(v);
}

// Formats the price in dollars, or in the offer's own currency if no exchange rate is known.
std::string offer_price(const Offer& o, Micros price, const OfferQuery& q, const char* unknown) {
  if (price < 0) return unknown;
  const Micros dollars = o.in_dollars(price, q.rates);
  return dollars >= 0 ? format_dollars(dollars) : format_money(price, o.currency);
}

// Lists the offer's links: "nvswitch, efa, 3200 Gbps".
std::string links_of(const Offer& o) {
  std::vector<std::string> parts;
  for (const std::string& word : {o.interconnect, o.rdma})
    if (!word.empty()) parts.push_back(word);
  if (o.network_gbps > 0) parts.push_back(fmt::format("{:g} Gbps", o.network_gbps));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Adds to the row the value by which offers are ranked, and for a workload where its number comes from.
void add_merit(std::vector<std::string>& row, const Offer& o, const OfferQuery& query, const Workload& workload) {
  const Value number = ranked_view(o, query)[to_string(query.rank)];
  row.push_back(!number.as_number()                     ? std::string(workload.named() ? "-" : "unknown")
                : query.rank == Rank::tokens_per_dollar ? fmt::format("{:.4g}", *number.as_number())
                                                        : fmt::format("${:.4g}", *number.as_number()));
  if (workload.named()) row.emplace_back(workload.source_of(o.gpu, o.gpu_memory_bytes));
}

std::string offers_table(const Terminal& terminal, const FoundOffers& listed, const OfferQuery& query, bool reserved) {
  const bool linked =
      std::any_of(listed.offers.begin(), listed.offers.end(), [](const Offer& o) { return !links_of(o).empty(); });
  std::vector<std::vector<std::string>> rows{{"PROVIDER", "OFFER", "GPU", "COUNT", "CPUS", "MEMORY", "REGION", "SPOT"}};
  if (linked) rows[0].emplace_back("LINKS");
  rows[0].emplace_back("PER HOUR");
  if (reserved) rows[0].insert(rows[0].end(), {"1 YEAR", "3 YEARS"});
  if (query.rank != Rank::price)
    rows[0].emplace_back(query.rank == Rank::price_per_tflop    ? "PER TFLOP"
                         : query.rank == Rank::price_per_gpu_gb ? "PER GPU GB"
                         : listed.workload.unit() == "samples"  ? "SAMPLES PER $"
                                                                : "TOKENS PER $");
  if (listed.workload.named()) rows[0].emplace_back("FROM");
  for (const Offer& o : listed.offers) {
    std::vector<std::string> row{o.provider,
                                 o.id,
                                 o.gpu.empty() ? "-" : o.gpu,
                                 fmt::format("{}", o.gpu_count),
                                 fmt::format("{}", o.vcpus),
                                 format_size_bytes(o.memory_bytes),
                                 o.region,
                                 o.spot ? "spot" : ""};
    if (linked) row.push_back(links_of(o));
    row.push_back(offer_price(o, o.price_micros_per_hour, query, "unknown"));
    if (reserved)
      for (const Micros price : {o.reserved_1y_micros_per_hour, o.reserved_3y_micros_per_hour})
        row.push_back(offer_price(o, price, query, "-"));
    if (query.rank != Rank::price) add_merit(row, o, query, listed.workload);
    rows.push_back(std::move(row));
  }
  std::string out = "no offers match\n";
  if (rows.size() > 1)
    out = fit_table(terminal, std::move(rows),
                    {{"LINKS", 10},
                     {"OFFER", 20},
                     {"LINKS"},
                     {"REGION", 10},
                     {"SPOT"},
                     {"CPUS"},
                     {"MEMORY"},
                     {"OFFER", 12},
                     {"REGION"},
                     {"OFFER"}});
  for (const auto& [name, types] : listed.unpriced)
    out += fmt::format("{}: {}\n", name, provider::unpriced_note(types));
  return out;
}

std::string age_of(std::int64_t told_us, std::int64_t now_us) {
  return format_duration_ms((now_us - told_us) / 1'000'000 * 1000);
}

// Tells how old cached prices are: "prices of 3m ago: aws, gcp".
std::string ages_of(const FoundOffers& listed, std::int64_t now_us) {
  std::map<std::string, std::vector<std::string>> by_age;
  for (const auto& [name, told_us] : listed.told_us) by_age[age_of(told_us, now_us)].push_back(name);
  std::vector<std::string> parts;
  for (const auto& [age, names] : by_age)
    parts.push_back(fmt::format("prices of {} ago: {}", age, fmt::join(names, ", ")));
  return parts.empty() ? "" : fmt::format("{}; rille offers --refresh asks again", fmt::join(parts, "; "));
}

// If no offer matches, tells the user which condition to change: repeats the query with looser conditions to see
// which one would match.
void say_what_to_change(App& app, const OfferQuery& query, const provider::OfferSettings& settings,
                        OfferLimits limits) {
  using provider::Asker;
  if (const std::string hint = provider::gpu_hint(query, Asker::command); !hint.empty()) return app.terminal.note(hint);
  if (providers_file().empty() && query.providers.empty() && query.gpu != "cpu")
    return app.terminal.note(
        fmt::format("only this machine is set up: {}/providers.json names others, see docs/manual/providers; "
                    "rille offers --list shows published prices without an account",
                    config_folder()));
  const std::optional<OfferQuery> loose = provider::loosened(query);
  std::vector<Offer> others;
  if (loose) {
    Result<FoundOffers> found = collect_offers(app, *loose, settings, limits, 0);
    if (!found) return;
    others = std::move(found->offers);
  }
  const std::string hint = provider::nearest_hint(query, others, Asker::command);
  if (!hint.empty()) app.terminal.note(hint);
}

struct OffersCommand final : Command {
  OffersArguments arguments;
  void declare(Options& o) override {
    OffersArguments& a = arguments;
    o.option("--gpu", a.gpu, "model and count, e.g. A100:8, or several; `any`: any that Rille supports; `cpu`")
        .separated_by_commas();
    o.option("--gpu-memory", a.gpu_memory, "memory of each GPU at least, e.g. 40GB");
    o.option("--gpu-vendor", a.gpu_vendor, "nvidia, amd, intel");
    o.option("--disk-kind", a.disk_kind, "the machine's own disk: nvme, network");
    o.option("--count", a.count, "GPUs per machine").between(1, 4096);
    o.flag("--spot", a.spot, "spot machines: cheaper, and may be preempted");
    o.flag("--reserved", a.reserved, "also show the hourly price with a commitment of one year and of three");
    o.option("--max-price", a.max_price, "dollars per hour at most").at_least(0);
    o.option("--vcpus", a.vcpus, "at least").at_least(1);
    o.option("--memory", a.memory, "at least, e.g. 64GB");
    o.option("--provider", a.providers, "only these providers").separated_by_commas();
    o.option("--region", a.regions, "only these regions").separated_by_commas();
    o.option("--interconnect", a.interconnect, "nvlink, nvswitch, rdma, infiniband, efa, ..");
    o.option("--network", a.network_gbps, "gigabits per second at least").above(0);
    o.option("--compliance", a.compliance, "gdpr, hipaa, mlps3, fedramp").separated_by_commas();
    o.option("--rank", a.rank, "price, price_per_tflop, price_per_gpu_gb, tokens_per_dollar");
    o.option("--rate", a.rates, "exchange rate to dollars, e.g. CNY=0.14").separated_by_commas();
    o.option("--tokens", a.tokens, "tokens per second that you measured on one GPU, e.g. H100=9500")
        .separated_by_commas();
    o.option("--workload", a.workload, "rank by the speed per dollar that rille.train measured under this name");
    o.flag("--estimated", a.estimated, "for GPUs not measured, estimate by their TFLOPs, in proportion");
    o.flag("--measured", a.measured, "list the measurements instead of offers");
    o.flag("--list", a.list, "the providers' published prices, with their dates: no account and no network needed");
    o.option("--max-age", a.max_age, "how old a price may be").shows_default();
    o.flag("--refresh", a.refresh, "ask the providers now");
    o.option("--timeout", a.timeout, "time that each provider has to answer, e.g. 20s");
    o.option("--limit", a.limit, "rows at most; 0: all").shows_default();
    const Option history = o.flag("--history", a.history, "past prices of spot machines, by type");
    o.option("--since", a.since, "how far back, e.g. 7d").shows_default().needs(history);
  }
  Exit run(App& app) override;
};

Exit OffersCommand::run(App& app) {
  if (arguments.history) return print_history(app, arguments);
  if (arguments.measured) return print_measured(app, arguments.workload);
  Workload workload;
  Result<OfferQuery> query = query_of(app, arguments, workload);
  if (!query) return fail(app, query.error());
  const std::size_t limit = app.json && arguments.limit == OffersArguments().limit ? 0 : arguments.limit;
  if (arguments.list) return print_listed(app, *query, limit);
  Result<std::int64_t> max_age_ms = arguments.refresh ? Result<std::int64_t>(-1) : parse_duration_ms(arguments.max_age);
  if (!max_age_ms) return fail(app, max_age_ms.error());
  Value times;
  if (!arguments.timeout.empty()) times.set("timeout", arguments.timeout);
  Result<std::int64_t> timeout_ms = lease::take_timeout(times);
  if (!timeout_ms) return fail(app, timeout_ms.error());
  const OfferLimits limits{*max_age_ms * 1000, *timeout_ms};
  Result<provider::OfferSettings> settings = offer_settings(app);
  if (!settings) return fail(app, settings.error());
  query->rates.insert(settings->rates.begin(), settings->rates.end());
  Result<FoundOffers> listed = collect_offers(app, *query, *settings, limits, limit);
  if (!listed) return fail(app, listed.error());
  listed->workload = std::move(workload);
  const std::int64_t now_us = app.loop->clock().wall_us();
  const bool nothing = listed->offers.empty() && !listed->errors.empty();
  const Exit code = nothing ? exit_of(listed->errors.front().error) : Exit::ok;
  if (app.json) {
    app.terminal.out(offers_value(*listed, *query, now_us).to_json_pretty() + "\n");
    return code;
  }
  if (!nothing) app.terminal.out(offers_table(app.terminal, *listed, *query, arguments.reserved));
  for (const auto& [name, error, told_us] : listed->errors) {
    Error said = error;
    if (!said.message.starts_with(name)) said.message = name + ": " + said.message;
    if (told_us) said.message += fmt::format(" (asked {} ago)", age_of(told_us, now_us));
    app.terminal.error(said, app.trace);
  }
  if (listed->offers.empty() && listed->errors.empty()) say_what_to_change(app, *query, *settings, limits);
  if (listed->matching > listed->offers.size())
    app.terminal.note(fmt::format("{} more: --limit 0 shows all", listed->matching - listed->offers.size()));
  if (const std::string ages = ages_of(*listed, now_us); !ages.empty()) app.terminal.note(ages);
  return code;
}

const Registered<OffersCommand> offers_row({Group::money, "offers", "what can be rented", Opens::nothing});

}  // namespace

}  // namespace rille::cli
