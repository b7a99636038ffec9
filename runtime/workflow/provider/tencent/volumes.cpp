#include "runtime/workflow/provider/tencent/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::provider::tencent {

namespace {

constexpr std::int64_t volume_gb = 1'000'000'000;
constexpr std::size_t ids_per_tag = 16;  // a tag's value has at most 255 characters, an id has 13

// CBS counts in GiB: the volume has a little more than was asked for, and costs as many "gigabytes" as the ledger
// counts.
std::int64_t size_of(std::int64_t bytes) { return (bytes + volume_gb - 1) / volume_gb; }

}  // namespace

const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{{"CLOUD_BSSD"}, {"CLOUD_PREMIUM"}, {"CLOUD_SSD"}, {"CLOUD_HSSD"}};
  return all;
}

Async<std::vector<Offer>> Volumes::offers(VolumeWish wish, CancelToken token) {
  const std::int64_t size_gb = std::max<std::int64_t>(size_of(wish.size_bytes), 1);
  RILLE_CO_TRY(const Micros whole, co_await cbs_.price(wish.kind, size_gb, std::move(token)));
  Offer offer = volume_offer("tencent", wish.kind, region_,
                             whole == price_unknown ? price_unknown : (whole + size_gb - 1) / size_gb);
  offer.currency = currency_;
  co_return std::vector<Offer>(1, std::move(offer));
}

Async<Machine> Volumes::create(CreateRequest request, CancelToken token) {
  if (zone_.empty())
    co_return make_error(ErrorKind::config, fmt::format("tencent: region {} has no zone", region_),
                         "a volume is in one zone: name it in the provider's settings: \"zone\": \"ap-..\"");
  Value::Array tags{Value().set("Key", tag_key).set("Value", request.tag)};
  tags.push_back(Value().set("Key", volume_key).set("Value", "1"));
  cloud::add_tags(tags, tags_, "Key", "Value");
  Value order;
  order.set("Placement", Value().set("Zone", zone_)).set("DiskChargeType", by_use).set("DiskName", request.tag);
  order.set("DiskType", volume_in(request).kind).set("DiskSize", size_of(request.disk_bytes)).set("DiskCount", 1);
  order.set("ClientToken", request.token).set("Tags", std::move(tags));
  Machine made;
  RILLE_CO_TRY(made.id, co_await cbs_.create(std::move(order), request.send_by_wall_us, token));
  made.state = MachineState::pending;
  made.details.set("zone", zone_);
  co_return made;
}

Async<> Volumes::attach(Instance instance, Machine& machine, CancelToken token) {
  if (instance.volumes.empty()) co_return success();
  RILLE_CO_TRY(const std::vector<Disk> disks, co_await cbs_.disks_of(instance.id, token));
  std::vector<cloud::Attached> there;
  for (const Disk& disk : disks) there.push_back({disk.id, disk.state == "ATTACHED"});
  cloud::Attach attach = [this, id = instance.id](std::string disk, CancelToken t) {
    return cbs_.attach(std::move(disk), id, std::move(t));
  };
  co_return co_await cloud::attach_missing(instance.volumes, std::move(there), machine, std::move(attach),
                                           std::move(token));
}

// A disk in the recycle bin (TORECYCLE) costs nothing, and is gone.
bool Volumes::is_shown(const Disk& disk) {
  return disk.state == "UNATTACHED" || (disk.is_volume && disk.state != "TORECYCLE");
}

// The interface shows a disk only once it can be attached.
Machine Volumes::machine_of(const Disk& disk) {
  if (!disk.is_volume) return left_over(disk.id, disk.tag);
  Machine m;
  m.id = disk.id;
  m.tag = disk.tag;
  m.state = MachineState::live;
  m.details.set("zone", disk.zone);
  return m;
}

void Volumes::add_tags(const CreateRequest& request, Value::Array& tags) {
  for (const auto& [key, value] : cloud::mount_tags(request, ids_per_tag))
    tags.push_back(Value().set("Key", key).set("Value", value));
}

// As Tencent's guide "Initializing Cloud Disks" names them: a virtio device has the disk's id as serial number.
std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request)) out.push_back({mount.at, "/dev/disk/by-id/virtio-" + mount.own_id()});
  return out;
}

}  // namespace rille::provider::tencent
