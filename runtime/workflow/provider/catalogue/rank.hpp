// Sorts offers by a number per offer, merit(), which the query's rank defines. Pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// Data of one GPU for ranking. 0: unknown.
struct GpuWorth {
  double tflops = 0;             // dense rate in bfloat16, or in fp16 if the GPU has no bfloat16
  double gb = 0;                 // GPU memory
  double tokens_per_second = 0;  // from OfferQuery::tokens_per_second
};
GpuWorth gpu_worth(const OfferQuery& query, std::string_view model, std::int64_t memory_bytes);
// The most specific key of `numbers` (such as OfferQuery::tokens_per_second) that matches a GPU; "": no key matches.
// The result points into `numbers`.
std::string_view number_for(const std::map<std::string, double>& numbers, std::string_view model,
                            std::int64_t memory_bytes);

// Smaller is better; infinity: unknown, so it comes last. `dollars` may be price_unknown.
double merit(Rank rank, Micros dollars, int gpu_count, const GpuWorth& worth);
double merit(const OfferQuery& query, const Offer& offer);

// Sorts best first; offers with equal merit keep their order.
void sort_by_rank(std::vector<Offer>& offers, const OfferQuery& query);

// For people: Offer::view, plus dollars_per_hour if the price can be converted, and the number that the query ranks by:
// price_per_tflop, price_per_gpu_gb (both in dollars per hour) or tokens_per_dollar.
Value ranked_view(const Offer& offer, const OfferQuery& query);

// "37 further types fit, whose price was not asked: name a GPU, a region or a size". For people.
std::string unpriced_note(std::int64_t types);

}  // namespace rille::provider
