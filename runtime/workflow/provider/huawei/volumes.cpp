#include "runtime/workflow/provider/huawei/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::provider::huawei {

namespace {

constexpr std::int64_t volume_gb = 1'000'000'000;
constexpr std::size_t ids_per_value = 6;  // a value of metadata has at most 255 characters, an id has 36
// A server's kernel knows the first 20 characters of a disk's id as its serial number (Huawei's guide to EVS: "How Do I
// Obtain My Disk Name in the ECS OS Using the Device Identifier Provided on the Console?").
constexpr std::size_t serial_length = 20;

// EVS counts in GiB: the volume has a little more than was asked for, and costs as many "gigabytes" as the ledger
// counts.
std::int64_t size_of(std::int64_t bytes) { return (bytes + volume_gb - 1) / volume_gb; }

}  // namespace

const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{{"GPSSD"}, {"SSD"}, {"SAS"}, {"ESSD"}};
  return all;
}

Async<std::vector<Offer>> Volumes::offers(VolumeWish wish, CancelToken token) {
  const std::int64_t size_gb = std::max<std::int64_t>(size_of(wish.size_bytes), 1);
  RILLE_CO_TRY(const cloud::Price price, co_await ecs_.disk_price(wish.kind, size_gb, zone_, std::move(token)));
  const Micros whole = price.micros_per_hour;
  Offer offer = volume_offer("huawei", wish.kind, ecs_.region(),
                             whole == price_unknown ? price_unknown : (whole + size_gb - 1) / size_gb);
  offer.currency = price.currency;
  co_return std::vector<Offer>(1, std::move(offer));
}

Async<Machine> Volumes::create(CreateRequest request, CancelToken token) {
  if (zone_.empty())
    co_return make_error(ErrorKind::config, fmt::format("huawei: region {} has no zone", ecs_.region()),
                         "a volume is in one zone: name it in the provider's settings: \"zone\": \"cn-..\"");
  Value tags;
  tags.set(tag_key, short_tag(request.tag)).set(volume_key, "1");
  for (const auto& [key, value] : *tags_.as_object()) tags.set(key, value);
  Value order;
  order.set("availability_zone", zone_).set("name", request.tag).set("count", 1);
  order.set("volume_type", volume_in(request).kind).set("size", size_of(request.disk_bytes));
  order.set("tags", std::move(tags));
  if (!kms_key_.empty())
    order.set("metadata", Value().set("__system__encrypted", "1").set("__system__cmkid", kms_key_));
  RILLE_CO_TRY(const std::string id,
               co_await ecs_.create_disk(std::move(order), request.token, request.send_by_wall_us, token));
  Machine made;
  made.id = std::string(disk_prefix) + id;
  made.state = MachineState::pending;
  made.details.set("zone", zone_);
  co_return made;
}

Async<> Volumes::attach(Server server, Machine& machine, CancelToken token) {
  std::vector<cloud::Attached> there;
  for (const std::string& disk : server.disks) there.push_back({disk});
  cloud::Attach attach = [this, id = server.id](std::string disk, CancelToken t) {
    return ecs_.attach(std::move(disk), id, std::move(t));
  };
  co_return co_await cloud::attach_missing(server.volumes, std::move(there), machine, std::move(attach),
                                           std::move(token));
}

bool Volumes::is_shown(const Disk& disk) { return disk.is_volume || (disk.status == "available" && !disk.attached); }

// The states: https://support.huaweicloud.com/intl/en-us/api-evs/evs_04_0040.html
Machine Volumes::machine_of(const Disk& disk) {
  const std::string id = std::string(disk_prefix) + disk.id;
  if (!disk.is_volume) return left_over(id, disk.tag);
  Machine m;
  m.id = id;
  m.tag = disk.tag;
  m.details.set("zone", disk.zone);
  const bool failed = disk.status == "error" || disk.status == "error_deleting";
  if (disk.status == "creating") m.state = MachineState::pending;
  else m.state = failed || disk.status == "deleting" ? MachineState::terminating : MachineState::live;
  if (failed) m.details.set("problem", "its status at EVS is " + disk.status);
  return m;
}

Value Volumes::metadata_of(const CreateRequest& request) {
  Value out;
  for (const auto& [key, value] : cloud::mount_tags(request, ids_per_value)) out.set(key, value);
  return out;
}

std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request))
    out.push_back({mount.at, "/dev/disk/by-id/*[-_]" + mount.own_id().substr(0, serial_length) + "*"});
  return out;
}

}  // namespace rille::provider::huawei
