// The arguments of `rille offers`, and its parts that other commands use; offers_command.cpp implements the command.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "runtime/workflow/provider/catalogue/cache.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::cli {

struct OffersArguments {
  std::vector<std::string> gpu;  // an offer must have one of these GPUs; empty: any GPU
  std::string gpu_memory, gpu_vendor, disk_kind, memory, interconnect, rank, max_age = "10m", timeout;
  // a rate is "CNY=0.14" (dollars per unit), a token speed "H100=9500" (tokens per second)
  std::vector<std::string> providers, regions, compliance, rates, tokens;
  double max_price = -1, network_gbps = 0;  // max_price in dollars per hour, -1: no limit
  int count = 0, vcpus = 0;
  std::size_t limit = 100;  // number of rows shown; 0: all rows
  std::string workload;
  bool estimated = false, measured = false, list = false;
  bool spot = false, refresh = false, history = false, reserved = false;
  std::string since = "7d";  // how far back --history goes
};

// A provider or region that failed to answer, in this query or when it was last queried.
struct UnheardProvider {
  std::string provider;
  Error error;
  std::int64_t told_us = 0;  // when the failed query was made; 0: just now
};

struct FoundOffers {
  std::vector<provider::Offer> offers;
  std::size_t matching = 0;
  std::vector<UnheardProvider> errors;
  std::map<std::string, std::int64_t> told_us;   // by provider: when the cached offers were queried
  std::map<std::string, std::int64_t> unpriced;  // by provider: number of machine types whose prices were not queried
  provider::Workload workload;                   // ranks the offers, if the user named a workload
};

struct OfferLimits {
  std::int64_t max_age_us = 0;  // how old cached offers may be; older ones are queried again
  std::int64_t timeout_ms = 0;  // time limit for each provider; 0: the default
};

// The offers that match the query, best first by its rank and at most `limit` (0: all): from the cache if the cached
// answers are fresh enough, else from the providers. The engine is opened only to ask them. Defined in
// offers_asked.cpp, as are the next two.
Result<FoundOffers> collect_offers(App& app, const provider::OfferQuery& query, const provider::OfferSettings& settings,
                                   OfferLimits limits, std::size_t limit);
// The settings file's providers; the error of an unreadable file is that of opening the engine, which says more.
Result<provider::OfferSettings> offer_settings(App& app);
// The offers as rille.offers returns them: rows of offers, of providers that failed, and of omissions.
Value offers_value(const FoundOffers& found, const provider::OfferQuery& query, std::int64_t now_us);

// `rille offers --list`: prints the list prices that match the query, without account or network. Defined in
// offers_listed.cpp.
Exit print_listed(App& app, const provider::OfferQuery& query, std::size_t limit);

// `rille offers --measured`: prints measured training speeds of one workload; "": of all workloads. Defined in
// offers_measured.cpp.
Exit print_measured(App& app, const std::string& workload);
// `rille offers --history`: prints past spot prices. Defined in history_command.cpp.
Exit print_history(App& app, const OffersArguments& arguments);

}  // namespace rille::cli
