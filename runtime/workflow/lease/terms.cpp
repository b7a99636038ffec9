#include "runtime/workflow/lease/terms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/ask.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/nearest.hpp"
#include "runtime/workflow/provider/rent_options.hpp"

namespace rille::lease {

namespace {

Result<> read_duration(const Value& options, const char* key, std::int64_t& out) {
  const Value& v = options[key];
  if (v.is_null()) return {};
  if (const double* seconds = v.as_number()) {
    constexpr double most = 1e12;  // longest duration, in seconds
    if (!(*seconds > 0 && *seconds < most) || std::llround(*seconds * 1000) == 0)
      return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected a positive, finite duration", key, *seconds),
                        "write it as \"6h\" or in seconds");
    out = std::llround(*seconds * 1000);
    return {};
  }
  const std::string* text = v.as_string();
  if (!text)
    return make_error(ErrorKind::invalid, fmt::format("{} must be a duration", key),
                      "write it as \"6h\" or in seconds");
  Result<std::int64_t> ms = parse_duration_ms(*text);
  if (!ms) return make_error(ErrorKind::invalid, fmt::format("{}: {}", key, ms.error().message), ms.error().hint);
  if (*ms <= 0)
    return make_error(ErrorKind::invalid, fmt::format("{} = \"{}\": a duration must be positive", key, *text));
  out = *ms;
  return {};
}

// Refuses a small plain number: numbers are seconds, but ttl = 6 hardly means 6 seconds, which no machine starts in.
Result<> check_plain(const Value& options, const char* key) {
  constexpr double least = 60;
  const double* n = options[key].as_number();
  if (!n || *n >= least) return {};
  return make_error(
      ErrorKind::invalid,
      fmt::format("{} = {}: a number without a unit means seconds, and a machine takes longer than that to start", key,
                  *n),
      fmt::format("write {0} = \"{1}h\" or {0} = \"{1}m\"; if seconds are meant, {0} = \"{1}s\"", key, *n));
}

const std::vector<std::string>& durations() {
  static const std::vector<std::string> names = {"ttl", "min_ttl", "orphan_after", "idle_after", "hold_ttl"};
  return names;
}

// Options that are neither durations nor part of an offers query.
const std::vector<std::string>& own() {
  static const std::vector<std::string> names = {"price",     "disk", "unguarded", "on_loss", "idle_below",
                                                 "gpu_check", "cuda", "cluster",   "volumes", "adopt"};
  return names;
}

Result<> read_own(const std::string& key, const Value& value, Terms& terms) {
  auto wrong = [&](const char* wanted, const char* hint) {
    return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected {}", key, value.to_json(), wanted), hint);
  };
  if (key == "price") {
    if (!value.as_number() || !(*value.as_number() >= 0)) return wrong("dollars per hour", "price = 1.20");
    RILLE_TRY(terms.price_micros_per_hour, micros_from_dollars(*value.as_number()));
  } else if (key == "disk") {
    RILLE_TRY(terms.disk_bytes, provider::read_size("disk", value));
  } else if (key == "volumes") {  // read from the options where the rent is planned
    RILLE_CHECK(check_mounts(value));
  } else if (key == "idle_below") {
    if (!value.as_number() || !(*value.as_number() >= 0 && *value.as_number() <= 1))
      return wrong("a number from 0 to 1", "idle_below = 0.05: up to 5 % of its GPUs, or of its processors");
    terms.idle_below = *value.as_number();
  } else if (key == "gpu_check") {  // only checked here; calls read it from the options
    if (!value.as_bool()) return wrong("true or false", "false accepts a machine that does not show its GPUs");
  } else if (key == "cuda") {
    if (!value.as_bool()) return wrong("true or false", "false rents a GPU for box:exec only");
    terms.cuda = *value.as_bool();
  } else if (key == "cluster") {
    if (!value.as_string() || value.as_string()->empty())
      return wrong("a name", "rille.cluster(\"gang\", ..) sets this option for its members");
    terms.cluster = *value.as_string();
  } else if (key == "adopt") {  // read by RunImpl::rent, before anything is rented
    if (!value.as_bool() && (!value.as_string() || value.as_string()->empty()))
      return wrong("true, false or the id of a lease", "true uses a live or detached machine of that name");
  } else if (key == "unguarded") {
    if (!value.as_bool()) return wrong("true or false", "");
    terms.unguarded = *value.as_bool();
  } else {
    const std::string* word = value.as_string();
    if (!word || (*word != "replace" && *word != "fail"))
      return wrong("\"replace\" or \"fail\"", "\"replace\" goes on with another machine, \"fail\" raises an error");
    terms.replace = *word == "replace";
  }
  return {};
}

// The error for an unknown option. For names that other tools use, it says what to write instead.
Error unknown_option(const char* asker, const std::string& key, const std::vector<std::string>& all) {
  static const std::map<std::string, std::string> ahead = {
      {"budget", "a budget counts for the whole run: rille.budget { limit = 5.00 }"},
      {"container", "name the container in the call: box:exec(\"train\", { container = \"image\", argv = { .. } })"},
      {"ports", "no provider here opens ports"},
      {"max_age", "use ttl, the age at which the instance ends: ttl = \"6h\""},
      {"detach", "call it on the rented instance: box:detach(\"24h\")"},
      {"setup", "use setup = true in the call: box:exec(\"setup\", { argv = { .. }, setup = true })"}};
  if (auto it = ahead.find(key); it != ahead.end())
    return make_error(ErrorKind::invalid, fmt::format("{} has no option '{}' yet", asker, key), it->second);
  std::string near = did_you_mean(key, all);
  return make_error(
      ErrorKind::invalid, fmt::format("{} has no option '{}'", asker, key),
      near.empty() ? fmt::format("options: {}", fmt::join(all, " ")) : fmt::format("did you mean {}?", near));
}

std::vector<std::string> all_options() {
  std::vector<std::string> all = durations();
  all.push_back("provider");
  all.insert(all.end(), own().begin(), own().end());
  all.insert(all.end(), provider::rent_options().begin(), provider::rent_options().end());
  all.insert(all.end(), provider::OfferQuery::fields().begin(), provider::OfferQuery::fields().end());
  return all;
}

}  // namespace

Result<Terms> read_terms(const Value& options, const char* asker) {
  static const std::vector<std::string> all = all_options();
  const std::vector<std::string>& to_one = provider::rent_options();
  Terms terms;
  Value query;
  std::string from;  // the option `provider`
  if (const Value::Object* o = options.as_object()) {
    for (const auto& [key, value] : *o) {
      if (!among(all, key)) return unknown_option(asker, key, all);
      if (among(durations(), key) || among(to_one, key)) continue;
      if (key == "provider") {
        if (!value.as_string())
          return make_error(ErrorKind::invalid, "provider must be a name", "e.g. provider = \"local\"");
        from = *value.as_string();
      } else if (among(own(), key)) {
        RILLE_CHECK(read_own(key, value, terms));
      } else {
        query.set(key, value);
      }
    }
  }
  RILLE_CHECK(read_duration(options, "ttl", terms.ttl_ms));
  RILLE_CHECK(read_duration(options, "min_ttl", terms.min_ttl_ms));
  RILLE_CHECK(read_duration(options, "orphan_after", terms.orphan_after_ms));
  RILLE_CHECK(read_duration(options, "idle_after", terms.idle_after_ms));
  RILLE_CHECK(read_duration(options, "hold_ttl", terms.hold_ms));
  for (const char* key : {"ttl", "hold_ttl"}) RILLE_CHECK(check_plain(options, key));
  if (terms.min_ttl_ms > terms.ttl_ms && !options["min_ttl"].is_null())
    return make_error(ErrorKind::invalid,
                      fmt::format("min_ttl = {} is longer than ttl = {}", format_duration_ms(terms.min_ttl_ms),
                                  format_duration_ms(terms.ttl_ms)),
                      "min_ttl is the shortest acceptable time, ttl the requested time: min_ttl cannot be longer");
  terms.min_ttl_ms = std::min(terms.min_ttl_ms, terms.ttl_ms);
  RILLE_TRY(terms.query, provider::OfferQuery::from_value(query));
  if (!from.empty() && !terms.query.accepts_provider(from))
    return make_error(ErrorKind::invalid, fmt::format("provider = \"{}\" is not among providers", from),
                      "pass only one of provider and providers");
  if (!from.empty()) terms.query.providers = {from};
  terms.asks = query.set("provider", from).to_json();
  RILLE_TRY(terms.extra, provider::read_rent_options(options, terms.query));
  if (options["on_loss"].is_null()) terms.replace = terms.query.spot;
  return terms;
}

Result<std::int64_t> take_timeout(Value& query) {
  std::int64_t ms = 0;
  RILLE_CHECK(read_duration(query, "timeout", ms));
  if (ms == 0 && !query["timeout"].is_null())
    return make_error(ErrorKind::invalid, "timeout: 0 leaves no time for an answer", "as in timeout = \"20s\"");
  if (Value::Object* o = query.as_object()) o->erase("timeout");
  return ms;
}

Micros Terms::price_of(const provider::Offer& offer) const {
  const Micros known = offer.dollars(query.rates);
  const bool reserved = !extra["reservation"].is_null();  // only the user knows the price of his reservation
  return (known < 0 || reserved) && price_micros_per_hour ? *price_micros_per_hour : known;
}

// A spot price may rise up to max_price, which includes the disk, or by a quarter if no max_price is given. With a cap
// at today's price, the machine would end at the next change.
Micros Terms::cap_of(const provider::Offer& offer, Micros disk) const {
  const Micros price = price_of(offer), headroom = price / 4;
  if (!offer.spot || price < 0) return price;
  if (!query.max_price_micros_per_hour) return price + headroom;
  return std::max(price, *query.max_price_micros_per_hour - std::max<Micros>(disk, 0));
}

// The price counts started gigabytes. It is price_unknown if the offer does not give it, or gives it in a currency
// without a rate: a provider that charges for machines also charges for disks.
Micros Terms::disk_of(const provider::Offer& offer, std::int64_t usual) const {
  constexpr double hours_per_month = 730;
  const std::int64_t bytes = disk_bytes ? disk_bytes : usual;
  if (bytes == 0) return 0;
  const std::int64_t gigabytes = (bytes + 999'999'999) / 1'000'000'000;
  if (auto told = disk_prices.find(offer.provider); told != disk_prices.end())
    return static_cast<Micros>(std::ceil(told->second * 1e6 * static_cast<double>(gigabytes) / hours_per_month));
  if (offer.disk_micros_per_gb_hour > 0) return offer.in_dollars(offer.disk_micros(bytes), query.rates);
  return offer.price_micros_per_hour == 0 && offer.disk_micros_per_gb_hour == 0 ? 0 : provider::price_unknown;
}

namespace {
constexpr const char* dear_disk = "that costs no more than max_price with its disk";
}  // namespace

const char* Terms::obstacle(const provider::Offer& offer, const provider::Traits& traits, Micros disk) const {
  if (disk_bytes > offer.disk_bytes_max) return "with such a disk";
  const Micros price = price_of(offer);
  if (query.max_price_micros_per_hour && price >= 0 && disk > 0 && price + disk > *query.max_price_micros_per_hour)
    return dear_disk;
  if (!unguarded && traits.dead_man == provider::DeadMan::none)
    return "that would end without this computer, if this computer never returns";
  return nullptr;
}

Error nothing_to_rent(const Terms& terms, bool refused, const char* obstacle,
                      const std::vector<provider::Offer>& others) {
  const std::vector<std::string>& named = terms.query.providers;
  std::string nothing = "no provider has anything";
  if (named.size() == 1) nothing = "provider '" + named.front() + "' has nothing";
  if (named.size() > 1) nothing = fmt::format("none of {} has anything", fmt::join(named, ", "));
  const char* more = refused ? " that it would give" : "";
  std::string hint = "see what there is with `rille offers`; gpu = \"any\" also takes this machine's CPU";
  if (terms.query.runnable)
    hint =
        "see what there is with `rille offers`; on a machine with GPUs \"any\" is a free one of them, and "
        "gpu = \"cpu\" its processor";
  if (obstacle == dear_disk) hint = "raise max_price, or ask for a smaller disk: disk = \"20GB\"";
  else if (obstacle && terms.disk_bytes > 0) hint = "ask for a smaller disk, or none";
  else if (obstacle) hint = "unguarded = true accepts a machine that only this computer can end";
  std::string wishes = terms.query.region.empty() ? "" : ", region = \"" + terms.query.region + "\"";
  if (!terms.query.zone.empty()) wishes += ", in the zone of its volumes, " + terms.query.zone;
  for (const auto& [name, list] :
       {std::pair("regions", &terms.query.regions), std::pair("compliance", &terms.query.compliance)})
    if (!list->empty()) wishes += fmt::format(", {} = {}", name, fmt::join(*list, ", "));
  if (terms.query.gpu_memory_bytes > 0) wishes += ", gpu_memory = " + format_size_bytes(terms.query.gpu_memory_bytes);
  if (!terms.query.gpu_vendor.empty()) wishes += ", gpu_vendor = " + terms.query.gpu_vendor;
  if (!terms.query.disk_kind.empty()) wishes += ", disk_kind = " + terms.query.disk_kind;
  if (terms.query.vcpus > 0) wishes += fmt::format(", vcpus = {}", terms.query.vcpus);
  if (terms.query.memory_bytes > 0) wishes += ", memory = " + format_size_bytes(terms.query.memory_bytes);
  if (!terms.query.interconnect.empty()) wishes += ", interconnect = " + terms.query.interconnect;
  if (terms.query.network_gbps > 0) wishes += fmt::format(", network_gbps = {}", terms.query.network_gbps);
  if (std::string near = provider::nearest_hint(terms.query, others, provider::Asker::rent); !obstacle && !near.empty())
    hint = std::move(near);
  std::string cap = terms.query.max_price_micros_per_hour
                        ? ", max_price = " + format_dollars(*terms.query.max_price_micros_per_hour)
                        : "";
  return make_error(ErrorKind::capacity,
                    fmt::format("{} for gpu = \"{}\"{}{}{}{}", nothing, terms.query.shown_gpu(), wishes, cap, more,
                                obstacle ? std::string(" ") + obstacle : std::string()),
                    hint);
}

}  // namespace rille::lease
