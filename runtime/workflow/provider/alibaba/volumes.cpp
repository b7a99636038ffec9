#include "runtime/workflow/provider/alibaba/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::provider::alibaba {

namespace {

constexpr std::int64_t volume_gb = 1'000'000'000;
constexpr std::size_t ids_per_tag = 5;  // a tag's value has at most 128 characters, an instance at most 20 tags

// ECS counts in GiB: the volume has a little more than was asked for, and costs as many "gigabytes" as the ledger
// counts.
std::int64_t size_of(std::int64_t bytes) { return (bytes + volume_gb - 1) / volume_gb; }

}  // namespace

// cloud_essd is of the performance level PL1, ECS's default.
const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{
      {"cloud_essd"}, {"cloud_auto"}, {"cloud_essd_entry"}, {"cloud_ssd"}, {"cloud_efficiency"}};
  return all;
}

Async<std::vector<Offer>> Volumes::offers(VolumeWish wish, CancelToken token) {
  const std::int64_t size_gb = std::max<std::int64_t>(size_of(wish.size_bytes), 1);
  RILLE_CO_TRY(const cloud::Price price, co_await ecs_.disk_price(wish.kind, size_gb, std::move(token)));
  const Micros whole = price.micros_per_hour;
  Offer offer = volume_offer("alibaba", wish.kind, ecs_.region(),
                             whole == price_unknown ? price_unknown : (whole + size_gb - 1) / size_gb);
  if (!price.currency.empty()) offer.currency = price.currency;
  co_return std::vector<Offer>(1, std::move(offer));
}

Async<Machine> Volumes::create(CreateRequest request, CancelToken token) {
  if (zone_.empty())
    co_return make_error(ErrorKind::config, fmt::format("alibaba: region {} has no zone", ecs_.region()),
                         "a volume is in one zone: name that of the VSwitch in the settings: \"zone\": \"cn-..\"");
  Parameters order{{"ZoneId", zone_},
                   {"DiskName", request.tag},
                   {"DiskCategory", volume_in(request).kind},
                   {"Size", std::to_string(size_of(request.disk_bytes))},
                   {"ClientToken", request.token}};
  int n = 0;
  const auto add = [&](const std::string& key, const std::string& value) {
    const std::string at = fmt::format("Tag.{}.", ++n);
    order.insert(order.end(), {{at + "Key", key}, {at + "Value", value}});
  };
  add(tag_key, request.tag);
  add(volume_key, "1");
  for (const auto& [key, value] : *tags_.as_object()) add(key, *value.as_string());
  if (!kms_key_.empty()) order.insert(order.end(), {{"Encrypted", "true"}, {"KMSKeyId", kms_key_}});
  Machine made;
  RILLE_CO_TRY(made.id, co_await ecs_.create_disk(std::move(order), request.send_by_wall_us, token));
  made.state = MachineState::pending;
  made.details.set("zone", zone_);
  co_return made;
}

Async<> Volumes::attach(Instance instance, Machine& machine, CancelToken token) {
  if (instance.volumes.empty()) co_return success();
  RILLE_CO_TRY(const std::vector<Disk> disks, co_await ecs_.disks_of(instance.id, token));
  std::vector<cloud::Attached> there;
  for (const Disk& disk : disks) there.push_back({disk.id, disk.status == "In_use"});
  cloud::Attach attach = [this, id = instance.id](std::string disk, CancelToken t) {
    return ecs_.attach(std::move(disk), id, std::move(t));
  };
  co_return co_await cloud::attach_missing(instance.volumes, std::move(there), machine, std::move(attach),
                                           std::move(token));
}

bool Volumes::is_shown(const Disk& disk) { return disk.is_volume || disk.status == "Available"; }

Machine Volumes::machine_of(const Disk& disk) {
  if (!disk.is_volume) return left_over(disk.id, disk.tag);
  Machine m;
  m.id = disk.id;
  m.tag = disk.tag;
  m.details.set("zone", disk.zone);
  if (disk.status == "Creating") m.state = MachineState::pending;
  else m.state = disk.status.starts_with("Delet") ? MachineState::terminating : MachineState::live;
  return m;
}

Parameters Volumes::tags_of(const CreateRequest& request) { return cloud::mount_tags(request, ids_per_tag); }

// A disk's serial number (DescribeDisks: SerialNumber) is its id without "d-", as virtio and as NVMe device.
std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request))
    out.push_back({mount.at, "/dev/disk/by-id/*[-_]" + mount.own_id().substr(2)});
  return out;
}

}  // namespace rille::provider::alibaba
