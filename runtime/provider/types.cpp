#include "runtime/provider/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "runtime/provider/gpus.hpp"

namespace rille::provider {

namespace {
constexpr std::array<std::string_view, 4> dead_men = {"provider", "guest", "credential", "none"};
constexpr std::array<std::string_view, 4> states = {"pending", "live", "terminating", "gone"};

Error wrong(const char* field, const Value& value, const char* wanted) {
  return make_error(ErrorKind::invalid, fmt::format("{} = {}: {} is wanted", field, value.to_json(), wanted));
}

Result<int> whole_number(const Value& value, const char* field, int most) {
  const double* n = value.as_number();
  if (!n || *n < 0 || *n > most || *n != std::floor(*n))
    return wrong(field, value, fmt::format("a whole number up to {}", most).c_str());
  return static_cast<int>(*n);
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// "A100:8" -> model and count.
Result<> read_gpu(const Value& value, OfferQuery& out) {
  const std::string* text = value.as_string();
  if (!text || text->empty()) return wrong("gpu", value, "\"any\", \"cpu\" or a model such as \"A100\" or \"A100:8\"");
  std::size_t colon = text->find(':');
  out.gpu = text->substr(0, colon);
  if (colon == std::string::npos) return {};
  std::string_view digits = std::string_view(*text).substr(colon + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.count);
  if (error != std::errc() || end != digits.data() + digits.size() || out.count < 1 || out.gpu.empty())
    return wrong("gpu", value, "a count after the colon, as in \"A100:8\"");
  return {};
}
}  // namespace

std::string_view to_string(DeadMan who) { return dead_men[static_cast<std::size_t>(who)]; }
std::string_view to_string(MachineState state) { return states[static_cast<std::size_t>(state)]; }

const std::vector<std::string>& OfferQuery::fields() {
  static const std::vector<std::string> names = {"gpu", "count", "spot", "max_price", "region", "vcpus", "memory"};
  return names;
}

bool OfferQuery::accepts_no_gpu() const { return (lower(gpu) == "any" && count == 0) || lower(gpu) == "cpu"; }

Result<OfferQuery> OfferQuery::from_value(const Value& value) {
  OfferQuery out;
  if (value.is_null() || (value.as_array() && value.as_array()->empty())) return out;
  const Value::Object* object = value.as_object();
  if (!object) return wrong("offers", value, "a table of options");
  for (const auto& [key, field] : *object) {
    if (key == "gpu") {
      RILLE_CHECK(read_gpu(field, out));
    } else if (key == "spot") {
      if (!field.as_bool()) return wrong("spot", field, "true or false");
      out.spot = *field.as_bool();
    } else if (key == "max_price") {
      if (!field.as_number() || !(*field.as_number() >= 0)) return wrong("max_price", field, "dollars per hour");
      RILLE_TRY(out.max_price_micros_per_hour, micros_from_dollars(*field.as_number()));
    } else if (key == "region") {
      if (!field.as_string()) return wrong("region", field, "a name");
      out.region = *field.as_string();
    } else if (key == "memory") {
      if (const double* n = field.as_number()) out.memory_bytes = static_cast<std::int64_t>(*n);
      else if (!field.as_string()) return wrong("memory", field, "a size such as \"32GB\"");
      else { RILLE_TRY(out.memory_bytes, parse_size_bytes(*field.as_string())); }
    } else if (key == "vcpus") {
      RILLE_TRY(out.vcpus, whole_number(field, "vcpus", 1 << 20));
    } else if (key != "count") {
      std::string near = did_you_mean(key, fields());
      return make_error(ErrorKind::invalid, "there is no option '" + key + "' for offers",
                        near.empty() ? "there are " + fmt::format("{}", fmt::join(fields(), ", "))
                                     : "did you mean '" + near + "'?");
    }
  }
  if (const Value& count = value["count"]; !count.is_null()) {
    RILLE_TRY(out.count, whole_number(count, "count", 4096));
  }
  return out;
}

Value Billing::to_value() const {
  Value out;
  out.set("unit_s", unit_s).set("minimum_s", minimum_s).set("minimum_micros", minimum_micros);
  out.set("from_live", from_live);
  return out;
}

Billing Billing::from_value(const Value& v) {
  Billing out;
  out.unit_s = std::max<std::int64_t>(v.integer("unit_s", 1), 1);
  out.minimum_s = v.integer("minimum_s");
  out.minimum_micros = v.integer("minimum_micros");
  out.from_live = v.boolean("from_live");
  return out;
}

Value Offer::to_value() const {
  Value out;
  out.set("provider", provider).set("id", id).set("gpu", gpu).set("gpu_count", gpu_count);
  out.set("gpu_memory_bytes", gpu_memory_bytes).set("vcpus", vcpus).set("memory_bytes", memory_bytes);
  out.set("region", region).set("spot", spot).set("price_micros_per_hour", price_micros_per_hour);
  if (currency != "USD") out.set("currency", currency);
  if (billing != Billing()) out.set("billing", billing.to_value());
  if (disk_bytes_max) out.set("disk_bytes_max", disk_bytes_max).set("disk_micros_per_gb_hour", disk_micros_per_gb_hour);
  return out;
}

Value Offer::view() const {
  Value out = to_value();
  for (const char* inner : {"price_micros_per_hour", "disk_micros_per_gb_hour"}) out.as_object()->erase(inner);
  if (price_micros_per_hour >= 0) out.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  if (disk_bytes_max) out.set("disk_price_per_gb_hour", static_cast<double>(disk_micros_per_gb_hour) / 1e6);
  return out;
}

Result<Offer> Offer::from_value(const Value& v) {
  Offer out;
  out.provider = v.text("provider");
  out.id = v.text("id");
  if (out.provider.empty() || out.id.empty())
    return make_error(ErrorKind::invalid, "an offer needs a provider and an id, not " + v.to_json());
  out.gpu = v.text("gpu");
  out.gpu_count = static_cast<int>(v.integer("gpu_count"));
  out.gpu_memory_bytes = v.integer("gpu_memory_bytes");
  out.vcpus = static_cast<int>(v.integer("vcpus"));
  out.memory_bytes = v.integer("memory_bytes");
  out.region = v.text("region");
  out.spot = v.boolean("spot");
  out.price_micros_per_hour = std::max(v.integer("price_micros_per_hour", price_unknown), price_unknown);
  out.currency = v.text("currency", out.currency);
  out.billing = Billing::from_value(v["billing"]);
  out.disk_bytes_max = v.integer("disk_bytes_max");
  out.disk_micros_per_gb_hour = v.integer("disk_micros_per_gb_hour");
  return out;
}

bool Offer::matches(const OfferQuery& q) const {
  if (gpu_count == 0 ? !q.accepts_no_gpu() : lower(q.gpu) == "cpu") return false;
  if (gpu_count > 0 && lower(q.gpu) != "any" && !gpu_matches(gpu, gpu_memory_bytes, q.gpu)) return false;
  if (q.count > 0 && lower(q.gpu) != "cpu" && gpu_count != q.count) return false;
  if (q.max_price_micros_per_hour && (dollars() < 0 || dollars() > *q.max_price_micros_per_hour)) return false;
  return (q.region.empty() || q.region == region) && vcpus >= q.vcpus && memory_bytes >= q.memory_bytes;
}

Result<Traits> read_traits(const Value& v, Traits otherwise) {
  Traits& t = otherwise;
  const std::pair<const char*, std::int64_t*> fields[] = {
      {"token_lifetime_ms", &t.token_lifetime_ms}, {"create_timeout_ms", &t.create_timeout_ms},
      {"visibility_lag_ms", &t.visibility_lag_ms}, {"billing_unit_s", &t.billing_unit_s},
      {"billing_minimum_s", &t.billing_minimum_s}, {"look_every_ms", &t.look_every_ms},
      {"teardown_ms", &t.teardown_ms},             {"spot_notice_s", &t.spot_notice_s}};
  for (const auto& [key, value] : v.as_object() ? *v.as_object() : Value::Object()) {
    const auto named = [&](const auto& f) { return key == f.first; };
    const auto field = std::find_if(std::begin(fields), std::end(fields), named);
    const auto who = std::find(dead_men.begin(), dead_men.end(), value.as_string() ? *value.as_string() : "");
    if (key == "dead_man" && who != dead_men.end()) {
      t.dead_man = static_cast<DeadMan>(who - dead_men.begin());
    } else if (field == std::end(fields) || !value.as_number() || *value.as_number() < 0) {
      return make_error(ErrorKind::config, fmt::format("the traits say {} = {}", key, value.to_json()),
                        "they are whole numbers, and dead_man = \"provider\": see the manual's page on the provider");
    } else {
      *field->second = v.integer(key);
    }
  }
  return t;
}

Value CreateRequest::to_value() const {
  Value out;
  out.set("offer", offer.to_value()).set("tag", tag).set("token", token).set("expires_wall_us", expires_wall_us);
  out.set("orphan_after_ms", orphan_after_ms).set("hold_ms", hold_ms).set("disk_bytes", disk_bytes);
  if (cap_micros_per_hour) out.set("cap_micros_per_hour", cap_micros_per_hour);
  if (!extra.is_null()) out.set("extra", extra);
  return out;
}

Result<CreateRequest> CreateRequest::from_value(const Value& v) {
  CreateRequest out;
  RILLE_TRY(out.offer, Offer::from_value(v["offer"]));
  out.tag = v.text("tag");
  out.token = v.text("token");
  if (out.tag.empty() || out.token.empty())
    return make_error(ErrorKind::invalid, "a request to create a machine needs a tag and a token: " + v.to_json());
  out.expires_wall_us = v.integer("expires_wall_us");
  out.orphan_after_ms = v.integer("orphan_after_ms", out.orphan_after_ms);
  out.cap_micros_per_hour = v.integer("cap_micros_per_hour");
  out.hold_ms = v.integer("hold_ms", out.hold_ms);
  out.disk_bytes = v.integer("disk_bytes");
  out.extra = v["extra"];
  return out;
}

Value Machine::to_value() const {
  Value out;
  out.set("id", id).set("state", to_string(state)).set("tag", tag).set("created_wall_us", created_wall_us);
  out.set("expires_wall_us", expires_wall_us).set("channel", channel.to_value());
  if (!details.is_null()) out.set("details", details);
  if (notice_wall_us) out.set("notice_wall_us", notice_wall_us);
  if (price_micros_per_hour >= 0) out.set("price_micros_per_hour", price_micros_per_hour);
  return out;
}

Result<Machine> Machine::from_value(const Value& v) {
  Machine out;
  out.id = v.text("id");
  auto it = std::find(states.begin(), states.end(), v.text("state"));
  if (out.id.empty() || it == states.end())
    return make_error(ErrorKind::invalid, "a machine needs an id and a state, not " + v.to_json());
  out.state = static_cast<MachineState>(it - states.begin());
  out.tag = v.text("tag");
  out.created_wall_us = v.integer("created_wall_us");
  out.expires_wall_us = v.integer("expires_wall_us");
  if (!v["channel"].text("directory").empty()) { RILLE_TRY(out.channel, ChannelSpec::from_value(v["channel"])); }
  out.details = v["details"];
  out.notice_wall_us = v.integer("notice_wall_us");
  out.price_micros_per_hour = v.integer("price_micros_per_hour", price_unknown);
  return out;
}

}  // namespace rille::provider
