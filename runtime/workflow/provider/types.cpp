#include "runtime/workflow/provider/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/core/base/object_text.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/texts.hpp"

namespace rille::provider {

namespace {
constexpr std::array<std::string_view, 4> dead_men = {"provider", "guest", "credential", "none"};
constexpr std::array<std::string_view, 4> states = {"pending", "live", "terminating", "gone"};

// The text fields that only some offers have, with their names in the journal.
constexpr std::pair<const char*, std::string Offer::*> words[] = {{"gpu_vendor", &Offer::gpu_vendor},
                                                                  {"interconnect", &Offer::interconnect},
                                                                  {"rdma", &Offer::rdma},
                                                                  {"disk_kind", &Offer::disk_kind},
                                                                  {"driver", &Offer::driver},
                                                                  {"cuda_max", &Offer::cuda_max}};

// A price field of Offer: `inner` is its name in the journal, `shown` its name for people.
struct Reserved {
  const char *inner, *shown;
  Micros Offer::*field;
};
constexpr Reserved reserved[] = {
    {"reserved_1y_micros_per_hour", "reserved_1y_price_per_hour", &Offer::reserved_1y_micros_per_hour},
    {"reserved_3y_micros_per_hour", "reserved_3y_price_per_hour", &Offer::reserved_3y_micros_per_hour}};

// Object is Value, or ObjectText, which writes JSON text directly. The keys are set in sorted order: ObjectText
// requires it, and Value appends faster.
template <class Object>
Object as(const Billing& b) {
  Object out;
  out.set("from_live", b.from_live).set("minimum_micros", b.minimum_micros).set("minimum_s", b.minimum_s);
  out.set("unit_s", b.unit_s);
  return out;
}

template <class Object>
Object as(const Offer& o) {
  Object out;
  const auto word = [&out](const char* key, const std::string& text) {
    if (!text.empty()) out.set(key, text);
  };
  if (o.billing != Billing()) out.set("billing", as<Object>(o.billing));
  if (!o.compliance.empty()) out.set("compliance", Value::Array(o.compliance.begin(), o.compliance.end()));
  word("cuda_max", o.cuda_max);
  if (o.currency != "USD") out.set("currency", o.currency);
  if (o.disk_bytes_max) out.set("disk_bytes_max", o.disk_bytes_max);
  word("disk_kind", o.disk_kind);
  if (o.disk_bytes_max) out.set("disk_micros_per_gb_hour", o.disk_micros_per_gb_hour);
  word("driver", o.driver);
  out.set("gpu", o.gpu).set("gpu_count", o.gpu_count).set("gpu_memory_bytes", o.gpu_memory_bytes);
  word("gpu_vendor", o.gpu_vendor);
  out.set("id", o.id);
  word("interconnect", o.interconnect);
  out.set("memory_bytes", o.memory_bytes);
  if (o.network_gbps > 0) out.set("network_gbps", o.network_gbps);
  out.set("price_micros_per_hour", o.price_micros_per_hour).set("provider", o.provider);
  word("rdma", o.rdma);
  out.set("region", o.region);
  for (const Reserved& r : reserved)
    if (o.*r.field >= 0) out.set(r.inner, o.*r.field);
  out.set("spot", o.spot).set("vcpus", o.vcpus);
  return out;
}

template <class Object>
Object as(const CreateRequest& r) {
  Object out;
  if (r.cap_micros_per_hour) out.set("cap_micros_per_hour", r.cap_micros_per_hour);
  out.set("disk_bytes", r.disk_bytes).set("expires_wall_us", r.expires_wall_us);
  if (!r.extra.is_null()) out.set("extra", r.extra);
  out.set("hold_ms", r.hold_ms);
  if (r.idle_after_ms) out.set("idle_after_ms", r.idle_after_ms).set("idle_below", r.idle_below);
  out.set("offer", as<Object>(r.offer)).set("orphan_after_ms", r.orphan_after_ms);
  out.set("tag", r.tag).set("token", r.token);
  return out;
}

template <class Object>
Object as(const Machine& m) {
  Object out;
  out.set("channel", m.channel.to_value()).set("created_wall_us", m.created_wall_us);
  if (!m.details.is_null()) out.set("details", m.details);
  out.set("expires_wall_us", m.expires_wall_us).set("id", m.id);
  if (m.notice_wall_us) out.set("notice_wall_us", m.notice_wall_us);
  if (m.price_micros_per_hour >= 0) out.set("price_micros_per_hour", m.price_micros_per_hour);
  out.set("state", to_string(m.state)).set("tag", m.tag);
  return out;
}
}  // namespace

std::string text_of(const CreateRequest& request) { return as<ObjectText>(request).take(); }
std::string text_of(const Machine& machine) { return as<ObjectText>(machine).take(); }

double rate_of(std::string_view currency, const Rates& rates) {
  if (currency == "USD") return 1;
  const auto at = rates.find(std::string(currency));
  return at == rates.end() ? 0 : at->second;
}

Micros convert(Micros amount, double rate) {
  constexpr double most = 9e15;
  const double out = static_cast<double>(amount) * rate;
  if (amount < 0 || !(rate > 0) || !(out < most)) return price_unknown;
  return rate == 1 ? amount : static_cast<Micros>(std::llround(out));
}

std::string_view to_string(DeadMan who) { return dead_men[static_cast<std::size_t>(who)]; }
std::string_view to_string(MachineState state) { return states[static_cast<std::size_t>(state)]; }

Value Billing::to_value() const { return as<Value>(*this); }

Billing Billing::from_value(const Value& v) {
  Billing out;
  out.unit_s = std::max<std::int64_t>(v.integer("unit_s", 1), 1);
  out.minimum_s = v.integer("minimum_s");
  out.minimum_micros = v.integer("minimum_micros");
  out.from_live = v.boolean("from_live");
  return out;
}

Value Offer::to_value() const { return as<Value>(*this); }

Micros Offer::in_dollars(Micros amount, const Rates& rates) const { return convert(amount, rate_of(currency, rates)); }

Micros Offer::disk_micros(std::int64_t bytes) const {
  return disk_micros_per_gb_hour * ((bytes + 999'999'999) / 1'000'000'000);
}

Micros Offer::from_dollars(Micros amount, const Rates& rates) const {
  const double rate = rate_of(currency, rates);
  return rate > 0 ? convert(amount, 1 / rate) : price_unknown;
}

Value Offer::view() const {
  Value out = to_value();
  for (const char* inner : {"price_micros_per_hour", "disk_micros_per_gb_hour"}) out.as_object()->erase(inner);
  if (price_micros_per_hour >= 0) out.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  for (const Reserved& r : reserved) {
    out.as_object()->erase(r.inner);
    if (this->*r.field >= 0) out.set(r.shown, static_cast<double>(this->*r.field) / 1e6);
  }
  if (disk_micros_per_gb_hour > 0)
    out.set("disk_price_per_gb_hour", static_cast<double>(disk_micros_per_gb_hour) / 1e6);
  return out;
}

Result<Offer> Offer::from_value(const Value& v) {
  Offer out;
  out.provider = v.text("provider");
  out.id = v.text("id");
  if (out.provider.empty() || out.id.empty())
    return make_error(ErrorKind::invalid, "an offer needs a provider and an id, not " + v.to_json(),
                      "take it unchanged from rille.offers, or mend the remote provider that sent it");
  out.gpu = v.text("gpu");
  out.gpu_count = amounts::count(v.number("gpu_count"));
  out.gpu_memory_bytes = amounts::bytes(v.number("gpu_memory_bytes"));
  out.vcpus = amounts::count(v.number("vcpus"));
  out.memory_bytes = amounts::bytes(v.number("memory_bytes"));
  out.region = v.text("region");
  out.spot = v.boolean("spot");
  out.price_micros_per_hour = std::max(v.integer("price_micros_per_hour", price_unknown), price_unknown);
  for (const Reserved& r : reserved) out.*r.field = std::max(v.integer(r.inner, price_unknown), price_unknown);
  out.currency = v.text("currency", out.currency);
  out.billing = Billing::from_value(v["billing"]);
  out.disk_bytes_max = amounts::bytes(v.number("disk_bytes_max"));
  out.disk_micros_per_gb_hour = std::max<Micros>(price_unknown, v.integer("disk_micros_per_gb_hour"));
  for (const auto& [name, field] : words) out.*field = v.text(name);
  out.network_gbps = amounts::bounded(v.number("network_gbps"), amounts::gbps_max);
  if (const Value::Array* tags = v["compliance"].as_array())
    for (const Value& tag : *tags)
      if (tag.as_string()) out.compliance.push_back(*tag.as_string());
  return out;
}

Result<Traits> read_traits(const Value& v, Traits otherwise) {
  Traits& t = otherwise;
  const std::pair<const char*, std::int64_t*> fields[] = {{"token_lifetime_ms", &t.token_lifetime_ms},
                                                          {"create_timeout_ms", &t.create_timeout_ms},
                                                          {"visibility_lag_ms", &t.visibility_lag_ms},
                                                          {"billing_unit_s", &t.billing_unit_s},
                                                          {"billing_minimum_s", &t.billing_minimum_s},
                                                          {"look_every_ms", &t.look_every_ms},
                                                          {"teardown_ms", &t.teardown_ms},
                                                          {"spot_notice_s", &t.spot_notice_s}};
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

Value CreateRequest::to_value() const { return as<Value>(*this); }

Result<CreateRequest> CreateRequest::from_value(const Value& v) {
  CreateRequest out;
  RILLE_TRY(out.offer, Offer::from_value(v["offer"]));
  out.tag = v.text("tag");
  out.token = v.text("token");
  if (out.tag.empty() || out.token.empty())
    return make_error(ErrorKind::invalid, "a request to create a machine needs a tag and a token: " + v.to_json(),
                      "the journal that holds it is damaged: restore journal.db from a backup");
  out.expires_wall_us = v.integer("expires_wall_us");
  out.orphan_after_ms = v.integer("orphan_after_ms", out.orphan_after_ms);
  out.idle_after_ms = v.integer("idle_after_ms");
  out.idle_below = v.number("idle_below", out.idle_below);
  out.cap_micros_per_hour = v.integer("cap_micros_per_hour");
  out.hold_ms = v.integer("hold_ms", out.hold_ms);
  out.disk_bytes = v.integer("disk_bytes");
  out.extra = v["extra"];
  return out;
}

void CreateRequest::tell_end(Value& instance_file) const {
  instance_file.set("expires_wall_us", expires_wall_us).set("orphan_after_ms", orphan_after_ms);
  if (idle_after_ms) instance_file.set("idle_after_ms", idle_after_ms).set("idle_below", idle_below);
}

Value Machine::to_value() const { return as<Value>(*this); }

Result<Machine> Machine::from_value(const Value& v) {
  Machine out;
  out.id = v.text("id");
  auto it = std::find(states.begin(), states.end(), v.text("state"));
  if (out.id.empty() || it == states.end())
    return make_error(ErrorKind::invalid, "a machine needs an id and a state, not " + v.to_json(),
                      "mend the remote provider that sent it: docs/manual/providers/remote.md");
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
