#include "runtime/workflow/provider/account.hpp"

#include <fmt/format.h>

#include "runtime/core/base/time.hpp"

namespace rille::provider {

namespace {
constexpr const char* lack_code = "not_there";
}

Value Identity::to_value() const {
  Value out;
  out.set("who", who).set("account", account).set("from", from);
  if (key_made_wall_us > 0) out.set("key_made", format_utc(key_made_wall_us));
  else out.set("age_unknown", age_unknown);
  out.set("skew_seconds", static_cast<double>(skew_us) / 1e6);
  Value::Array reached;
  for (const AskedRegion& one : regions) {
    Value v;
    v.set("region", one.region).set("reachable", !one.problem);
    if (one.problem) v.set("problem", one.problem->message);
    reached.push_back(std::move(v));
  }
  return out.set("regions", std::move(reached));
}

Value Quota::to_value() const {
  Value out;
  out.set("region", region).set("name", name).set("limit", limit);
  if (used >= 0) out.set("used", used);
  return out;
}

Value PricePoint::to_value() const {
  Value out;
  out.set("type", type).set("zone", zone).set("currency", currency).set("from", format_utc(from_wall_us));
  return out.set("price_per_hour", static_cast<double>(micros_per_hour) / 1e6);
}

Error lacks(std::string_view provider, std::string_view what) {
  Error out = make_error(ErrorKind::invalid, fmt::format("{}{}has no {}", provider, provider.empty() ? "" : " ", what),
                         "Rille cannot do this with that provider: use another one, or do without it");
  out.code = lack_code;
  out.provider = provider;
  return out;
}

Error tell_lack(Error error, std::string_view provider) {
  if (error.code == lack_code && error.provider.empty()) error.message = fmt::format("{} {}", provider, error.message);
  return error;
}

bool is_lack(const Error& error) { return error.code == lack_code; }

}  // namespace rille::provider
