#include "runtime/lease/terms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "runtime/base/time.hpp"
#include "runtime/lease/rows.hpp"
#include "runtime/provider/gpus.hpp"

namespace rille::lease {

namespace {

Result<> read_duration(const Value& options, const char* key, std::int64_t& out) {
  const Value& v = options[key];
  if (v.is_null()) return {};
  if (const double* seconds = v.as_number()) {
    if (!(*seconds > 0))
      return make_error(ErrorKind::invalid,
                        fmt::format("{} = {}: a duration must be positive", key, *seconds));
    out = static_cast<std::int64_t>(*seconds * 1000);
    return {};
  }
  const std::string* text = v.as_string();
  if (!text)
    return make_error(ErrorKind::invalid, fmt::format("{} must be a duration", key),
                      "write it as \"6h\" or in seconds");
  Result<std::int64_t> ms = parse_duration_ms(*text);
  if (!ms) return make_error(ErrorKind::invalid, fmt::format("{}: {}", key, ms.error().message), ms.error().hint);
  out = *ms;
  return {};
}

const std::vector<std::string>& durations() {
  static const std::vector<std::string> names = {"ttl", "min_ttl", "orphan_after", "hold_ttl"};
  return names;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The options of rent that are neither durations nor the offers'.
Result<> read_own(const std::string& key, const Value& value, Terms& terms) {
  auto wrong = [&](const char* wanted, const char* hint) {
    return make_error(ErrorKind::invalid, fmt::format("{} = {}: {} is wanted", key, value.to_json(), wanted), hint);
  };
  if (key == "price") {
    if (!value.as_number() || !(*value.as_number() >= 0)) return wrong("dollars per hour", "price = 1.20");
    RILLE_TRY(terms.price_micros_per_hour, micros_from_dollars(*value.as_number()));
  } else if (key == "disk") {
    if (const double* n = value.as_number()) terms.disk_bytes = static_cast<std::int64_t>(*n);
    else if (!value.as_string()) return wrong("a size", "disk = \"200GB\"");
    else { RILLE_TRY(terms.disk_bytes, parse_size_bytes(*value.as_string())); }
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

// Words that other tools have, or that Rille will: the reader is told so, instead of being offered a neighbour.
Error unknown_option(const std::string& key, const std::vector<std::string>& all) {
  static const std::map<std::string, std::string> ahead = {
      {"budget", "a budget is of the whole run: rille.budget { limit = 5.00 }"},
      {"container", "no provider here starts containers; start one with box:exec"},
      {"image", "no provider here takes images; install with box:exec"},
      {"ports", "no provider here opens ports"},
      {"detach", "say it of the box: box:detach(\"24h\")"},
      {"setup", "say it where it is run: box:exec(\"setup\", { argv = { .. }, setup = true })"}};
  if (auto it = ahead.find(key); it != ahead.end())
    return make_error(ErrorKind::invalid, fmt::format("rent has no option '{}' yet", key), it->second);
  std::string near = did_you_mean(key, all);
  return make_error(ErrorKind::invalid, fmt::format("rent has no option '{}'", key),
                    near.empty() ? fmt::format("options: {}", fmt::join(all, " "))
                                 : fmt::format("did you mean {}?", near));
}

}  // namespace

Result<Terms> read_terms(const Value& options) {
  std::vector<std::string> all = durations();
  all.insert(all.end(), {"provider", "price", "disk", "unguarded", "on_loss"});
  all.insert(all.end(), provider::OfferQuery::fields().begin(), provider::OfferQuery::fields().end());
  Terms terms;
  Value query;
  if (const Value::Object* o = options.as_object()) {
    for (const auto& [key, value] : *o) {
      if (!among(all, key)) return unknown_option(key, all);
      if (among(durations(), key)) continue;
      if (key == "provider") {
        if (!value.as_string())
          return make_error(ErrorKind::invalid, "provider must be a name", "e.g. provider = \"local\"");
        terms.provider = *value.as_string();
      } else if (among({"price", "disk", "unguarded", "on_loss"}, key)) {
        RILLE_CHECK(read_own(key, value, terms));
      } else {
        query.set(key, value);
      }
    }
  }
  RILLE_CHECK(read_duration(options, "ttl", terms.ttl_ms));
  RILLE_CHECK(read_duration(options, "min_ttl", terms.min_ttl_ms));
  RILLE_CHECK(read_duration(options, "orphan_after", terms.orphan_after_ms));
  RILLE_CHECK(read_duration(options, "hold_ttl", terms.hold_ms));
  terms.min_ttl_ms = std::min(terms.min_ttl_ms, terms.ttl_ms);
  RILLE_TRY(terms.query, provider::OfferQuery::from_value(query));
  if (options["on_loss"].is_null()) terms.replace = terms.query.spot;
  return terms;
}

Micros Terms::price_of(const provider::Offer& offer) const {
  Micros known = offer.dollars();
  return known < 0 && price_micros_per_hour ? *price_micros_per_hour : known;
}

// Spot prices move, up to what the rent allows.
Micros Terms::cap_of(const provider::Offer& offer) const {
  Micros price = price_of(offer);
  return offer.spot && price >= 0 ? std::max(price, query.max_price_micros_per_hour.value_or(price)) : price;
}

const char* Terms::obstacle(const provider::Offer& offer, const provider::Traits& traits) const {
  if (disk_bytes > offer.disk_bytes_max) return "with such a disk";
  if (!unguarded && traits.dead_man == provider::DeadMan::none) return "that is ended when its runner is lost for ever";
  return nullptr;
}

Error nothing_to_rent(const Terms& terms, bool refused, const char* obstacle) {
  std::string where = terms.provider.empty() ? "any provider" : "provider '" + terms.provider + "'";
  const char* more = refused ? " that it would give" : "";
  std::string hint = "see what there is with `rille offers`; gpu = \"any\" also takes this machine's CPU";
  if (obstacle && terms.disk_bytes > 0) hint = "ask for a smaller disk, or none";
  else if (obstacle) hint = "unguarded = true takes one that nobody ends";
  else if (const std::string near = provider::nearest_gpu(terms.query.gpu); !near.empty() && terms.query.gpu != "any" &&
           terms.query.gpu != "cpu")
    hint = fmt::format("did you mean \"{}\"? {}", near, hint);
  std::string cap = terms.query.max_price_micros_per_hour
                        ? ", max_price = " + format_dollars(*terms.query.max_price_micros_per_hour)
                        : "";
  return make_error(ErrorKind::capacity,
                    fmt::format("{} has nothing for gpu = \"{}\"{}{}{}", where, terms.query.gpu, cap, more,
                                obstacle ? std::string(" ") + obstacle : std::string()),
                    hint);
}

}  // namespace rille::lease
