#include "runtime/workflow/provider/volumes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Offer volume_offer(std::string provider, const std::string& kind, std::string region, Micros micros_per_gb_hour) {
  constexpr std::int64_t largest_bytes = 1LL << 60;  // the provider refuses what is too large for it
  Offer o;
  o.provider = std::move(provider);
  o.id = fmt::format("volume:{}@{}", kind, region);
  o.region = std::move(region);
  o.disk_micros_per_gb_hour = micros_per_gb_hour;  // the only price that it has
  o.disk_bytes_max = largest_bytes;
  return o;
}

VolumeSeller* seller_of_volumes(Provider* provider) {
  auto* const seller = dynamic_cast<VolumeSeller*>(provider);
  return seller && !seller->volume_kinds().empty() ? seller : nullptr;
}

Error has_no_volumes(const std::string& provider) {
  std::vector<std::string> with{"local"};
  for (const std::string& name : provider_names())
    if (manner_of(name).volumes) with.push_back(name);
  Error e = lacks(provider, "volumes");
  e.hint = fmt::format("use a provider that has them: {}", fmt::join(with, ", "));
  return e;
}

void tell_volume(Value& extra, const VolumeTraits& traits) {
  extra.set("volume", Value().set("kind", traits.kind).set("shared", traits.shared).set("keep", traits.keep));
}

bool is_volume(const CreateRequest& request) { return !request.extra["volume"].is_null(); }

VolumeTraits volume_in(const CreateRequest& request) {
  const Value& told = request.extra["volume"];
  VolumeTraits out;
  out.kind = told.text("kind");
  out.shared = told.boolean("shared");
  out.keep = told.boolean("keep");
  return out;
}

void tell_mounts(Value& extra, const std::vector<Mount>& mounts) {
  if (mounts.empty()) return;
  Value::Array out;
  for (const Mount& m : mounts)
    out.push_back(Value()
                      .set("at", m.at)
                      .set("id", m.id)
                      .set("lease", m.lease)
                      .set("zone", m.zone)
                      .set("shared", m.shared)
                      .set("kind", m.kind));
  extra.set("volumes", std::move(out));
}

std::vector<Mount> mounts_in(const CreateRequest& request) {
  std::vector<Mount> out;
  if (const Value::Array* told = request.extra["volumes"].as_array())
    for (const Value& v : *told)
      out.push_back({v.text("at"), v.text("id"), v.text("lease"), v.text("zone"), v.boolean("shared"), v.text("kind")});
  return out;
}

Result<std::string> zone_with(const std::vector<Mount>& mounts, const std::string& of_offer) {
  std::string zone = of_offer;
  for (const Mount& mount : mounts) {
    if (zone.empty()) zone = mount.zone;
    if (zone != mount.zone)
      return make_error(ErrorKind::capacity,
                        fmt::format("the volume {} is in zone {}, and not in {}", mount.own_id(), mount.zone, zone),
                        "a machine gets volumes of its own zone only");
  }
  return zone;
}

}  // namespace rille::provider
