// Which offer comes first: the merit of each by the query's rank. Pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// What a rank needs to know of one GPU of a model. 0: not known.
struct GpuWorth {
  double tflops = 0;             // dense, bfloat16, or half where it has no bfloat16
  double gb = 0;                 // of memory
  double tokens_per_second = 0;  // as the query says
};
GpuWorth gpu_worth(const OfferQuery& query, std::string_view model, std::int64_t memory_bytes);
// The key of the number that is meant for a GPU, in a table such as OfferQuery::tokens_per_second; "": none. Into
// `numbers`.
std::string_view number_for(const std::map<std::string, double>& numbers, std::string_view model,
                            std::int64_t memory_bytes);

// The smaller, the better; infinity: not known, so it comes last. `dollars` may be price_unknown.
double merit(Rank rank, Micros dollars, int gpu_count, const GpuWorth& worth);
double merit(const OfferQuery& query, const Offer& offer);

// Best first; equal ones keep their order.
void sort_by_rank(std::vector<Offer>& offers, const OfferQuery& query);

// As people see it: Offer::view, with dollars_per_hour where a rate converts its price, and the number that its rank
// goes by: price_per_tflop, price_per_gpu_gb (dollars per hour) or tokens_per_dollar.
Value ranked_view(const Offer& offer, const OfferQuery& query);

// "37 further types fit, whose price was not asked: name a GPU, a region or a size". For people.
std::string unpriced_note(std::int64_t types);

}  // namespace rille::provider
