// Reads Amazon's price list, which has on-demand and reserved prices in one response. Spot prices: ec2.cpp.

#include "runtime/core/base/text.hpp"
#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

namespace {

using net::Effect;
using net::list_of;

// One offer of the price list: `hourly` in dollars per hour, `advance` the upfront fee in dollars.
struct Term {
  double hourly = 0, advance = 0;
};

Term read_term(const Value& of_term) {
  Term out;
  const Value::Object* dimensions = of_term["priceDimensions"].as_object();
  for (const auto& [name, dimension] : dimensions ? *dimensions : Value::Object()) {
    const double dollars = number_at(dimension["pricePerUnit"].text("USD"));
    (dimension.text("unit") == "Quantity" ? out.advance : out.hourly) += dollars;
  }
  return out;
}

// The hourly price of a standard reservation for `years`: the cheapest without an upfront fee, else the cheapest.
Micros reserved_price(const Value& terms, const char* length, int years) {
  Micros best = price_unknown;
  bool best_has_advance = true;
  const Value::Object* all = terms.as_object();
  for (const auto& [name, of_term] : all ? *all : Value::Object()) {
    const Value& attributes = of_term["termAttributes"];
    if (attributes.text("LeaseContractLength") != length || attributes.text("OfferingClass") != "standard") continue;
    const Term term = read_term(of_term);
    const bool has_advance = term.advance > 0;
    const double hours = static_cast<double>(cloud::year_hours * years);
    const Micros price = cloud::micros_of(term.hourly + term.advance / hours);
    if (price == price_unknown || (has_advance && !best_has_advance)) continue;
    if (best != price_unknown && has_advance == best_has_advance && price >= best) continue;
    best = price;
    best_has_advance = has_advance;
  }
  return best;
}

}  // namespace

Async<cloud::Price> Ec2::price(std::string type, CancelToken token) {
  Value::Array filters;
  for (const auto& [field, value] : {std::pair<const char*, std::string>{"instanceType", type},
                                     {"regionCode", region_},
                                     {"operatingSystem", "Linux"},
                                     {"tenancy", "Shared"},
                                     {"preInstalledSw", "NA"},
                                     {"capacitystatus", "Used"},
                                     {"licenseModel", "No License required"}})
    filters.push_back(Value().set("Type", "TERM_MATCH").set("Field", field).set("Value", value));
  Value body;
  body.set("ServiceCode", "AmazonEC2").set("FormatVersion", "aws_v1").set("MaxResults", 100);
  body.set("Filters", std::move(filters));
  net::Parts parts = parts_for(pricing_);
  parts.headers = {{"Content-Type", "application/x-amz-json-1.1"}, {"X-Amz-Target", "AWSPriceListService.GetProducts"}};
  parts.body = body.to_json();
  RILLE_CO_TRY(const Value answer, co_await pricing_api_.call("GetProducts", std::move(parts), Effect::none, token));
  cloud::Price out;
  for (const Value& text : list_of(answer["PriceList"])) {
    const Result<Value> product = text.as_string() ? Value::from_json(*text.as_string()) : Result<Value>(text);
    if (!product) continue;
    const Value& terms = (*product)["terms"];
    const Value::Object* on_demand = terms["OnDemand"].as_object();
    Micros least = price_unknown;
    for (const auto& [name, of_term] : on_demand ? *on_demand : Value::Object()) {
      const Micros price = cloud::micros_of(read_term(of_term).hourly);
      if (price != price_unknown && (least == price_unknown || price < least)) least = price;
    }
    if (least == price_unknown || (out.micros_per_hour != price_unknown && least >= out.micros_per_hour)) continue;
    out.micros_per_hour = least;
    out.reserved_1y = reserved_price(terms["Reserved"], "1yr", 1);
    out.reserved_3y = reserved_price(terms["Reserved"], "3yr", 3);
  }
  co_return out;
}

}  // namespace rille::provider::aws
