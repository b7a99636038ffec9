#include "runtime/workflow/provider/catalogue/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {
constexpr double unknown = std::numeric_limits<double>::infinity();
}  // namespace

GpuWorth gpu_worth(const OfferQuery& query, std::string_view model, std::int64_t memory_bytes) {
  GpuWorth out;
  if (model.empty()) return out;
  const GpuFacts* facts = known_gpu(model, memory_bytes);
  if (facts) out.tflops = (facts->bf16 > 0 ? facts->bf16 : facts->fp16) / 1e12;
  out.gb = static_cast<double>(memory_bytes) / 1e9;
  if (memory_bytes <= 0 && facts) out.gb = facts->memory_bytes / 1e9;
  const std::string_view name = number_for(query.tokens_per_second, model, memory_bytes);
  if (!name.empty()) out.tokens_per_second = query.tokens_per_second.at(std::string(name));
  return out;
}

// The longest matching name is the most specific one: "A100 80GB" before "A100".
std::string_view number_for(const std::map<std::string, double>& numbers, std::string_view model,
                            std::int64_t memory_bytes) {
  std::string_view best;
  for (const auto& [name, number] : numbers)
    if (name.size() > best.size() && gpu_matches(model, memory_bytes, name)) best = name;
  return best;
}

double merit(Rank rank, Micros dollars, int gpu_count, const GpuWorth& worth) {
  if (dollars < 0) return unknown;
  const double price = static_cast<double>(dollars) / 1e6;
  const double of_one = rank == Rank::price_per_tflop    ? worth.tflops
                        : rank == Rank::price_per_gpu_gb ? worth.gb
                                                         : worth.tokens_per_second;
  if (rank == Rank::price) return price;
  return of_one > 0 && gpu_count > 0 ? price / (of_one * gpu_count) : unknown;
}

double merit(const OfferQuery& query, const Offer& offer) {
  const GpuWorth worth = query.rank == Rank::price ? GpuWorth() : gpu_worth(query, offer.gpu, offer.gpu_memory_bytes);
  return merit(query.rank, offer.dollars(query.rates), offer.gpu_count, worth);
}

void sort_by_rank(std::vector<Offer>& offers, const OfferQuery& query) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < offers.size(); ++i) order.emplace_back(merit(query, offers[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Offer> out;
  out.reserve(offers.size());
  for (const auto& [m, i] : order) out.push_back(std::move(offers[i]));
  offers = std::move(out);
}

std::string unpriced_note(std::int64_t types) {
  return fmt::format("{} further type{}, whose price was not asked: name a GPU, a region or a size", types,
                     types == 1 ? " fits" : "s fit");
}

Value ranked_view(const Offer& offer, const OfferQuery& query) {
  Value out = offer.view();
  const Micros dollars = offer.dollars(query.rates);
  if (offer.currency != "USD" && dollars >= 0) out.set("dollars_per_hour", static_cast<double>(dollars) / 1e6);
  const double number = merit(query, offer);
  if (query.rank == Rank::price || !std::isfinite(number)) return out;
  if (query.rank != Rank::tokens_per_dollar) out.set(std::string(to_string(query.rank)), number);
  else if (number > 0) out.set("tokens_per_dollar", 3600 / number);
  return out;
}

}  // namespace rille::provider
