#include "runtime/workflow/lease/volumes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/provider/rent_options.hpp"

namespace rille::lease {

namespace {

constexpr std::size_t mounts_max = 16;  // volumes of one machine; clouds allow about as many

Error with_code(Error e, const char* code, const std::string& resource) {
  e.code = code;
  e.resource = resource;
  return e;
}

Result<std::string> read_word(const std::string& key, const Value& value) {
  if (value.as_string() && !value.as_string()->empty()) return *value.as_string();
  return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected a name", key, value.to_json()),
                    "rille.volume(\"data\", { size = \"200GB\", provider = \"aws\", region = \"us-east-1\" })");
}

// The leases that are open and whose request has the member.
std::string open_with(const char* member, const char* more) {
  return fmt::format(
      "WHERE open IS NOT NULL AND (SELECT json_type(request,'$.extra.{}') FROM requests WHERE "
      "requests.lease=leases.number) IS NOT NULL {}",
      member, more);
}

}  // namespace

Result<VolumeTerms> read_volume_terms(const Value& options) {
  static const std::vector<std::string> all = {"size", "kind", "provider", "region", "keep"};
  VolumeTerms terms;
  if (const Value::Object* o = options.as_object())
    for (const auto& [key, value] : *o) {
      if (key == "size") {
        RILLE_TRY(terms.wish.size_bytes, provider::read_size("size", value));
      } else if (key == "kind") {
        RILLE_TRY(terms.wish.kind, read_word(key, value));
      } else if (key == "provider") {
        RILLE_TRY(terms.provider, read_word(key, value));
      } else if (key == "region") {
        RILLE_TRY(terms.wish.region, read_word(key, value));
      } else if (key == "keep") {
        if (!value.as_bool())
          return make_error(ErrorKind::invalid, fmt::format("keep = {}: expected true or false", value.to_json()),
                            "false deletes the volume at the end of its scope");
        terms.keep = *value.as_bool();
      } else {
        const std::string near = did_you_mean(key, all);
        return make_error(
            ErrorKind::invalid, fmt::format("volume has no option '{}'", key),
            near.empty() ? fmt::format("options: {}", fmt::join(all, " ")) : fmt::format("did you mean {}?", near));
      }
    }
  return terms;
}

bool is_kept(const Lease& lease) { return is_volume(lease) && provider::volume_in(lease.request).keep; }

Result<std::optional<Lease>> open_volume(store::Db& db, const std::string& name) {
  RILLE_TRY(std::vector<Lease> found, read_leases(db, open_with("volume", "AND name=?"), {name}));
  if (found.empty()) return std::optional<Lease>();
  return std::optional<Lease>(std::move(found.front()));
}

Result<std::vector<Lease>> open_volumes(store::Db& db) {
  return read_leases(db, open_with("volume", "ORDER BY created_us"), {});
}

Result<> check_same(const Lease& volume, const Value& options) {
  RILLE_TRY(const VolumeTerms asked, read_volume_terms(options));
  const provider::VolumeTraits is = provider::volume_in(volume.request);
  const std::int64_t bytes = volume.request.disk_bytes;
  std::string there, wanted;
  const auto differs = [&](const char* what, const std::string& has, const std::string& wish) {
    there = fmt::format("{} = {}", what, has), wanted = wish;
  };
  if (asked.wish.size_bytes && asked.wish.size_bytes != bytes)
    differs("size", format_size_bytes(bytes), format_size_bytes(asked.wish.size_bytes));
  else if (!asked.wish.kind.empty() && asked.wish.kind != is.kind) differs("kind", is.kind, asked.wish.kind);
  else if (!asked.provider.empty() && asked.provider != volume.provider)
    differs("provider", volume.provider, asked.provider);
  else if (!asked.wish.region.empty() && asked.wish.region != volume.request.offer.region)
    differs("region", volume.request.offer.region, asked.wish.region);
  else if (asked.keep != is.keep) differs("keep", is.keep ? "true" : "false", asked.keep ? "true" : "false");
  if (there.empty()) return {};
  return with_code(make_error(ErrorKind::state,
                              fmt::format("the volume '{}' exists, and has {}, not {}", volume.name, there, wanted),
                              fmt::format("use another name, leave the option out, or delete the volume with its data: "
                                          "rille volume rm {}",
                                          volume.name)),
                   "volume_differs", volume.id);
}

Result<std::vector<User>> users_of(store::Db& db, const std::string& volume, std::int64_t now_us) {
  std::vector<User> out;
  // Generation 0 is a fork's lease, which has had no machine yet.
  RILLE_CHECK(db.query(
      "SELECT l.id,l.name,l.run FROM leases l JOIN requests r ON r.lease=l.number WHERE (l.open IS NOT NULL OR "
      "(l.replacing IS NOT NULL AND l.generation>0 AND l.expires_us>?2 AND EXISTS (SELECT 1 FROM runs u WHERE "
      "u.id=l.run AND u.state NOT IN ('done','failed','cancelled','removed')))) AND EXISTS "
      "(SELECT 1 FROM json_each(r.request,'$.extra.volumes') v WHERE json_extract(v.value,'$.lease')=?1)",
      {volume, now_us}, [&](const store::Row& row) {
        out.push_back({row.text(0), row.text(1), row.text(2)});
      }));
  return out;
}

Result<> check_unused(store::Db& db, const Lease& volume, std::int64_t now_us) {
  RILLE_TRY(const std::vector<User> users, users_of(db, volume.id, now_us));
  if (users.empty()) return {};
  const User& first = users.front();
  return with_code(make_error(ErrorKind::state,
                              fmt::format("the volume '{}' is mounted on '{}' ({}) of run {}", volume.name, first.name,
                                          first.lease, first.run),
                              fmt::format("release that instance first: rille release {}", first.lease)),
                   "volume_in_use", volume.id);
}

Result<bool> is_volume_row(store::Db& db, std::int64_t number) {
  bool volume = false;
  RILLE_CHECK(db.query("SELECT json_type(request,'$.extra.volume') IS NOT NULL FROM requests WHERE lease=?", {number},
                       [&](const store::Row& row) { volume = row.integer(0) != 0; }));
  return volume;
}

Result<> check_mounts(const Value& option) {
  const auto wrong = [&](const std::string& what) {
    return make_error(ErrorKind::invalid, "volumes: " + what, "volumes = { data = vol }, with vol from rille.volume");
  };
  const Value::Object* named = option.as_object();
  if (!named || named->empty()) return wrong("expected a table of folder names and volumes");
  if (named->size() > mounts_max) return wrong(fmt::format("{} are more than {}", named->size(), mounts_max));
  for (const auto& [at, volume] : *named) {
    const bool plain = !at.empty() && at.size() <= 64 &&
                       at.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_-") == std::string::npos;
    if (!plain) return wrong(fmt::format("'{}' is not a folder's name: letters, digits, - and _, at most 64", at));
    if (!volume.as_string()) return wrong(fmt::format("{} = {}: expected a volume", at, volume.to_json()));
  }
  return {};
}

namespace {

Result<Lease> live_volume(store::Db& db, const std::string& at, const std::string& id) {
  RILLE_TRY(std::vector<Lease> rows, read_leases(db, "WHERE id=?", {id}));
  if (!rows.empty() && is_volume(rows.front()) && rows.front().state == "live") return std::move(rows.front());
  const std::string state = rows.empty() || !is_volume(rows.front()) ? "not a volume" : rows.front().state;
  return with_code(make_error(ErrorKind::state, fmt::format("volumes: {} ({}) is {}", at, id, state),
                              "see `rille volume ls`; rille.volume makes a volume of a deleted one's name anew"),
                   "volume_gone", id);
}

std::string zone_of(const Lease& volume) { return volume.machine ? volume.machine->details.text("zone") : ""; }

// The volumes that an option `volumes` names, with their folders.
Result<std::vector<std::pair<std::string, Lease>>> volumes_in(store::Db& db, const Value& options) {
  std::vector<std::pair<std::string, Lease>> out;
  const Value& asked = options["volumes"];
  if (asked.is_null()) return out;
  RILLE_CHECK(check_mounts(asked));
  for (const auto& [at, id] : *asked.as_object()) {
    RILLE_TRY(Lease volume, live_volume(db, at, *id.as_string()));
    for (const auto& [other, before] : out)
      if (before.id == volume.id)
        return make_error(ErrorKind::invalid,
                          fmt::format("volumes: {} and {} are both the volume '{}'", other, at, volume.name),
                          "mount it once");
    out.emplace_back(at, std::move(volume));
  }
  return out;
}

bool asks_for(const Value& options, const char* one, const char* many, const std::string& place) {
  const Value& list = options[many];
  if (options[one].as_string() && *options[one].as_string() != place) return false;
  if (list.as_string()) return *list.as_string() == place;
  if (!list.as_array()) return true;
  return std::any_of(list.as_array()->begin(), list.as_array()->end(),
                     [&](const Value& v) { return v.as_string() && *v.as_string() == place; });
}

Error elsewhere(const Lease& volume, const std::string& other) {
  return make_error(ErrorKind::invalid,
                    fmt::format("the volume '{}' is in {} of {}, and {}", volume.name, volume.request.offer.region,
                                volume.provider, other),
                    "a machine gets only volumes of its own region: leave provider and region out, and the rent "
                    "follows the volume");
}

}  // namespace

Result<std::vector<provider::Mount>> mounts_of(store::Db& db, const Value& options) {
  RILLE_TRY(const auto volumes, volumes_in(db, options));
  std::vector<provider::Mount> out;
  for (const auto& [at, v] : volumes) {
    const provider::VolumeTraits is = provider::volume_in(v.request);
    out.push_back({at, v.machine_id, v.id, zone_of(v), is.shared, is.kind});
  }
  return out;
}

Result<Value> placed(store::Db& db, const Value& options) {
  RILLE_TRY(const auto volumes, volumes_in(db, options));
  if (volumes.empty()) return options;
  const Lease& first = volumes.front().second;
  std::string region;  // "": the volumes can be used in every region
  for (const auto& [at, v] : volumes)
    if (region.empty()) region = v.request.offer.region;
  const auto is_there = [&](const Lease& v) {
    return v.request.offer.region.empty() || v.request.offer.region == region;
  };
  for (const auto& [at, v] : volumes)
    if (v.provider != first.provider || !is_there(v))
      return elsewhere(first, fmt::format("'{}' in {} of {}", v.name, v.request.offer.region, v.provider));
  for (const auto& [at, v] : volumes)
    if (zone_of(v) != zone_of(first))
      return elsewhere(first, fmt::format("'{}' in another zone: {}, not {}", v.name, zone_of(v), zone_of(first)));
  const bool same_region = region.empty() || asks_for(options, "region", "regions", region);
  if (!asks_for(options, "provider", "providers", first.provider) || !same_region)
    return elsewhere(first, "the rent asks for another place");
  Value out = options;
  out.as_object()->erase("providers");
  out.set("provider", first.provider);
  if (region.empty()) return out;
  out.as_object()->erase("regions");
  return out.set("region", region);
}

Result<> check_free(store::Db& db, const Lease& lease, std::int64_t now_us) {
  for (const provider::Mount& m : provider::mounts_in(lease.request)) {
    RILLE_TRY(const Lease volume, live_volume(db, m.at, m.lease));
    if (volume.machine_id != m.id)
      return with_code(
          make_error(ErrorKind::state, fmt::format("the volume '{}' has changed", volume.name), "rent again"),
          "volume_gone", m.lease);
    if (m.shared) continue;
    RILLE_TRY(std::vector<User> users, users_of(db, m.lease, now_us));
    std::erase_if(users, [&](const User& u) { return u.lease == lease.id; });
    if (users.empty()) continue;
    const User& first = users.front();
    return with_code(
        make_error(
            ErrorKind::state,
            fmt::format("the volume '{}' is mounted on '{}' ({}) of run {}, and its kind, {}, is for one machine "
                        "at a time",
                        volume.name, first.name, first.lease, first.run, provider::volume_in(volume.request).kind),
            "release that instance first, or use a volume of a shared kind"),
        "volume_in_use", m.lease);
  }
  return {};
}

Result<> check_name_free(store::Db& db, const Lease& volume) {
  RILLE_TRY(const std::optional<Lease> other, open_volume(db, volume.name));
  if (!other || other->id == volume.id) return {};
  return with_code(
      make_error(ErrorKind::state,
                 fmt::format("run {} has just made a volume '{}' ({})", other->run, volume.name, other->id),
                 "call rille.volume again: it returns that one"),
      "volume_exists", other->id);
}

}  // namespace rille::lease
