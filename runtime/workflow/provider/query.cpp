// Parses a query from a script or the command line, and matches offers against it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/gpus.hpp"
#include "runtime/workflow/provider/providers.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

namespace {

constexpr std::array<std::string_view, 4> ranks = {"price", "price_per_tflop", "price_per_gpu_gb", "tokens_per_dollar"};

Error wrong(std::string_view field, const Value& value, std::string_view wanted) {
  return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected {}", field, value.to_json(), wanted));
}

Error unknown_word(std::string_view field, const std::string& word, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(word, known);
  return make_error(
      ErrorKind::invalid, fmt::format("{} = \"{}\": unknown value", field, word),
      near.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

Result<int> whole_number(const Value& value, const char* field, int most) {
  const double* n = value.as_number();
  if (!n || *n < 0 || *n > most || *n != std::floor(*n))
    return wrong(field, value, fmt::format("a whole number up to {}", most));
  return static_cast<int>(*n);
}

// Splits "A100:8" into model and number of GPUs.
Result<GpuWish> read_one_gpu(const Value& value) {
  const std::string* text = value.as_string();
  if (!text || text->empty())
    return wrong("gpu", value, "\"any\", \"cpu\", a model such as \"A100\" or \"A100:8\", or a list of models");
  GpuWish out;
  const std::size_t colon = text->find(':');
  out.model = text->substr(0, colon);
  if (colon == std::string::npos) return out;
  std::string_view digits = std::string_view(*text).substr(colon + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.count);
  if (error != std::errc() || end != digits.data() + digits.size() || out.count < 1 || out.model.empty())
    return wrong("gpu", value, "a count after the colon, as in \"A100:8\"");
  return out;
}

Result<> read_gpu(const Value& value, OfferQuery& out) {
  const Value::Array* list = value.as_array();
  if (!list || list->size() == 1) {
    RILLE_TRY(const GpuWish one, read_one_gpu(list ? list->front() : value));
    out.gpu = one.model;
    out.runnable = lower_case(out.gpu) == "any";
    if (one.count > 0) out.count = one.count;
    return {};
  }
  if (list->empty()) return wrong("gpu", value, "a model, or a list of models, as in { \"H100\", \"A100-80GB:8\" }");
  for (const Value& item : *list) {
    RILLE_TRY(GpuWish one, read_one_gpu(item));
    if (lower_case(one.model) == "any" || lower_case(one.model) == "cpu")
      return make_error(ErrorKind::invalid, fmt::format("gpu = {}: \"{}\" is not a model", value.to_json(), one.model),
                        "\"any\" and \"cpu\" stand alone; a list has models");
    out.gpus.push_back(std::move(one));
  }
  return {};
}

// Reads gpu_vendor or disk_kind. `known`: the words that known.cpp and the drivers use in offers.
Result<std::string> read_word(const char* field, const Value& value, const std::vector<std::string>& known) {
  if (!value.as_string()) return wrong(field, value, fmt::format("one of {}", fmt::join(known, ", ")));
  std::string word = lower_case(*value.as_string());
  if (std::find(known.begin(), known.end(), word) == known.end()) return unknown_word(field, *value.as_string(), known);
  return word;
}

// Reads one name, or a list of names.
Result<std::vector<std::string>> read_names(const char* field, const Value& value) {
  std::vector<std::string> out;
  if (const std::string* one = value.as_string()) out.push_back(*one);
  const Value::Array none, *list = value.as_array();
  for (const Value& item : list ? *list : none)
    if (item.as_string() && !item.as_string()->empty()) out.push_back(*item.as_string());
  if (!(value.as_string() || list) || (list && out.size() != list->size()))
    return wrong(field, value, "a name or a list of names");
  return out;
}

Result<std::map<std::string, double>> read_numbers(const char* field, const Value& value, const char* wanted,
                                                   bool or_zero = false) {
  std::map<std::string, double> out;
  const bool empty_list = value.as_array() && value.as_array()->empty();  // Lua's {} arrives as an empty list
  if (!value.as_object() && !empty_list && !value.is_null()) return wrong(field, value, wanted);
  for (const auto& [key, number] : value.as_object() ? *value.as_object() : Value::Object()) {
    const double* const n = number.as_number();
    if (!n || !(*n > 0 || (or_zero && *n == 0)) || !std::isfinite(*n))
      return wrong(fmt::format("{}.{}", field, key), number, wanted);
    out[key] = *n;
  }
  return out;
}

Result<> read_sieve(const std::string& key, const Value& field, OfferQuery& out) {
  if (key == "regions") {
    RILLE_TRY(out.regions, read_names("regions", field));
  } else if (key == "providers") {
    RILLE_TRY(out.providers, read_names("providers", field));
  } else if (key == "compliance") {
    RILLE_TRY(out.compliance, read_names("compliance", field));
    for (std::string& tag : out.compliance) {
      tag = lower_case(tag);
      const std::vector<std::string>& all = compliance_tags();
      if (std::find(all.begin(), all.end(), tag) == all.end()) return unknown_word("compliance", tag, all);
    }
  } else if (key == "gpu_vendor") {
    RILLE_TRY(out.gpu_vendor, read_word("gpu_vendor", field, {"nvidia", "amd", "intel"}));
  } else if (key == "disk_kind") {
    RILLE_TRY(out.disk_kind, read_word("disk_kind", field, {"nvme", "network"}));
  } else if (key == "gpu_memory") {
    RILLE_TRY(out.gpu_memory_bytes, read_size("gpu_memory", field));
  } else if (key == "interconnect") {
    if (!field.as_string()) return wrong("interconnect", field, "a word such as \"nvlink\" or \"rdma\"");
    out.interconnect = lower_case(*field.as_string());
    const std::vector<std::string>& all = interconnect_words();
    if (std::find(all.begin(), all.end(), out.interconnect) == all.end())
      return unknown_word("interconnect", *field.as_string(), all);
  } else {
    if (!field.as_number() || !(*field.as_number() >= 0)) return wrong("network_gbps", field, "gigabits per second");
    out.network_gbps = *field.as_number();
  }
  return {};
}

Result<> read_order(const std::string& key, const Value& field, OfferQuery& out) {
  if (key == "rank") {
    if (!field.as_string()) return wrong("rank", field, "a word such as \"price_per_tflop\"");
    const auto at = std::find(ranks.begin(), ranks.end(), *field.as_string());
    if (at == ranks.end()) return unknown_word("rank", *field.as_string(), {ranks.begin(), ranks.end()});
    out.rank = static_cast<Rank>(at - ranks.begin());
  } else if (key == "rates") {
    RILLE_TRY(out.rates, read_rates(field));
  } else {
    RILLE_TRY(out.tokens_per_second,
              read_numbers("tokens_per_second", field, "what one GPU was measured to do, as in { H100 = 9500 }"));
  }
  return {};
}

Result<> read_field(const std::string& key, const Value& field, OfferQuery& out) {
  if (key == "gpu") return read_gpu(field, out);
  if (key == "spot") {
    if (!field.as_bool()) return wrong("spot", field, "true or false");
    out.spot = *field.as_bool();
  } else if (key == "max_price") {
    if (!field.as_number() || !(*field.as_number() >= 0)) return wrong("max_price", field, "dollars per hour");
    RILLE_TRY(out.max_price_micros_per_hour, micros_from_dollars(*field.as_number()));
  } else if (key == "region") {
    if (!field.as_string()) return wrong("region", field, "a name");
    out.region = *field.as_string();
  } else if (key == "memory") {
    RILLE_TRY(out.memory_bytes, read_size("memory", field));
  } else if (key == "vcpus") {
    RILLE_TRY(out.vcpus, whole_number(field, "vcpus", 1 << 20));
  } else if (key == "rank" || key == "rates" || key == "tokens_per_second") {
    return read_order(key, field, out);
  } else if (key != "count") {
    return read_sieve(key, field, out);
  }
  return {};
}

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view to_string(Rank rank) { return ranks[static_cast<std::size_t>(rank)]; }

Result<Rates> read_rates(const Value& value) {
  RILLE_TRY(Rates rates, read_numbers("rates", value, "dollars for one unit of a currency, as in { CNY = 0.14 }"));
  for (const auto& [currency, rate] : rates) {
    const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    if (currency.size() != 3 || !std::all_of(currency.begin(), currency.end(), is_capital) || currency == "USD")
      return make_error(ErrorKind::invalid, fmt::format("rates: '{}' is not a currency code", currency),
                        "use currency codes, as in rates = { CNY = 0.14, EUR = 1.08 }");
  }
  return rates;
}

Result<DiskPrices> read_disk_prices(const Value& value) {
  const char* wanted = "dollars for a gigabyte and month by provider, as in { aws = 0.08 }";
  RILLE_TRY(DiskPrices prices, read_numbers("disk_price", value, wanted));
  for (const auto& [provider, price] : prices)
    if (const auto& known = provider_names(); !among(known, provider))
      return unknown_word("disk_price", provider, known);
  return prices;
}

Result<AddressPrices> read_address_prices(const Value& value) {
  static const std::vector<std::string> charging = {"aws", "azure", "gcp"};
  const char* wanted = "dollars for a machine's public address per hour by provider, as in { aws = 0.005 }";
  RILLE_TRY(AddressPrices prices, read_numbers("address_price", value, wanted, true));
  for (const auto& [provider, price] : prices)
    if (!among(charging, provider)) return unknown_word("address_price", provider, charging);
  return prices;
}

const std::vector<std::string>& OfferQuery::fields() {
  static const std::vector<std::string> names = {
      "gpu",          "count",      "gpu_memory",   "gpu_vendor", "spot",  "max_price",         "region",
      "vcpus",        "memory",     "regions",      "disk_kind",  "rates", "tokens_per_second", "providers",
      "interconnect", "compliance", "network_gbps", "rank"};
  return names;
}

bool OfferQuery::accepts_no_gpu() const {
  if (!gpus.empty() || gpu_memory_bytes > 0 || !gpu_vendor.empty()) return false;
  return (lower_case(gpu) == "any" && count == 0) || lower_case(gpu) == "cpu";
}

bool OfferQuery::accepts_gpu(std::string_view model, std::int64_t gpu_bytes) const {
  constexpr double as_sold = 0.97;  // a "24 GB" GPU may report less, with ECC enabled
  const double least = static_cast<double>(gpu_memory_bytes) * as_sold;
  if (gpu_memory_bytes > 0 && static_cast<double>(gpu_bytes) < least) return false;
  if (gpus.empty()) return lower_case(gpu) == "any" || gpu_matches(model, gpu_bytes, gpu);
  const auto is_it = [&](const GpuWish& one) { return gpu_matches(model, gpu_bytes, one.model); };
  return std::any_of(gpus.begin(), gpus.end(), is_it);
}

bool OfferQuery::accepts_count(std::string_view model, std::int64_t gpu_bytes, int n) const {
  if (gpus.empty()) return count == 0 || n == count;
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuWish& one) {
    return (one.count == 0 || one.count == n) && gpu_matches(model, gpu_bytes, one.model);
  });
}

std::vector<int> OfferQuery::counts() const {
  std::vector<int> out;
  if (count > 0) out.push_back(count);
  for (const GpuWish& one : gpus) {
    if (one.count == 0) return {};
    if (std::find(out.begin(), out.end(), one.count) == out.end()) out.push_back(one.count);
  }
  return out;
}

std::string OfferQuery::shown_gpu() const {
  const auto shown = [](const std::string& model, int n) { return n > 0 ? fmt::format("{}:{}", model, n) : model; };
  if (gpus.empty()) return shown(gpu, count);
  std::vector<std::string> all;
  for (const GpuWish& one : gpus) all.push_back(shown(one.model, one.count));
  return fmt::format("{}", fmt::join(all, ", "));
}

bool OfferQuery::accepts_region(std::string_view name) const {
  return (region.empty() || region == name) && (regions.empty() || among(regions, name));
}

bool OfferQuery::accepts_provider(std::string_view name) const { return providers.empty() || among(providers, name); }

Result<OfferQuery> OfferQuery::from_value(const Value& value) {
  OfferQuery out;
  if (value.is_null() || (value.as_array() && value.as_array()->empty())) return out;
  const Value::Object* object = value.as_object();
  if (!object) return wrong("offers", value, "a table of options");
  for (const auto& [key, field] : *object) {
    if (!among(fields(), key)) {
      std::string near = did_you_mean(key, fields());
      return make_error(
          ErrorKind::invalid, "there is no option '" + key + "' for offers",
          near.empty() ? "there are " + fmt::format("{}", fmt::join(fields(), ", ")) : "did you mean '" + near + "'?");
    }
    RILLE_CHECK(read_field(key, field, out));
  }
  if (out.gpu_memory_bytes > 0 && lower_case(out.gpu) == "cpu")
    return make_error(ErrorKind::invalid, "gpu_memory with gpu = \"cpu\": such a machine has no GPU",
                      "memory is the machine's own: memory = \"64GB\"");
  if (const Value& count = value["count"]; !count.is_null()) {
    RILLE_TRY(out.count, whole_number(count, "count", 4096));
  }
  if (!out.gpus.empty())  // `count` applies to models that give no number
    for (GpuWish& one : out.gpus) one.count = one.count > 0 ? one.count : out.count;
  if (!out.gpus.empty()) out.count = 0;
  if (out.rank == Rank::tokens_per_dollar && out.tokens_per_second.empty())
    return make_error(ErrorKind::invalid, "rank = \"tokens_per_dollar\" needs a measurement",
                      "add workload = \"NAME\", as rille.train measured it, or tokens_per_second = { H100 = 9500 }: of "
                      "one GPU, for your model");
  return out;
}

namespace {

// Whether Rille can compute on such a machine. A local GPU that is in no table is a MIG slice, which is accepted.
bool runs_rille(const Offer& o) {
  if (o.gpu_count == 0) return is_own_cpu(o.provider);
  const bool unknown_here = o.provider == "local" && !gpu_facts(o.gpu, o.gpu_memory_bytes);
  return unknown_here || runs_plugin(o.gpu, o.gpu_memory_bytes);
}

}  // namespace

bool Offer::matches(const OfferQuery& q) const {
  const std::string asked = lower_case(q.gpu);
  if (gpu_count == 0 ? !q.accepts_no_gpu() : asked == "cpu") return false;
  if (gpu_count > 0 && !q.accepts_gpu(gpu, gpu_memory_bytes)) return false;
  if (q.runnable && !runs_rille(*this)) return false;
  if (asked != "cpu" && !q.accepts_count(gpu, gpu_memory_bytes, gpu_count)) return false;
  if (vcpus < q.vcpus || memory_bytes < q.memory_bytes) return false;
  const bool placed = !provider.empty();  // drivers filter types before provider and region are set
  if (placed && !q.accepts_region(region)) return false;
  if (q.max_price_micros_per_hour) {
    const Micros price = dollars(q.rates);
    if (price < 0 || price > *q.max_price_micros_per_hour) return false;
  }
  if (q.interconnect.empty() && q.network_gbps <= 0 && q.compliance.empty() && q.gpu_vendor.empty() &&
      q.disk_kind.empty())
    return true;
  Offer whole = *this;
  complete(whole);
  if (!q.interconnect.empty() && !has_interconnect(whole.interconnect, whole.rdma, q.interconnect)) return false;
  if (!q.gpu_vendor.empty() && whole.gpu_vendor != q.gpu_vendor) return false;
  if (!q.disk_kind.empty() && whole.disk_kind != q.disk_kind) return false;
  const auto has = [&whole](const std::string& tag) { return among(whole.compliance, tag); };
  if (placed && !std::all_of(q.compliance.begin(), q.compliance.end(), has)) return false;
  return whole.network_gbps >= q.network_gbps;
}

}  // namespace rille::provider
