#include "runtime/workflow/provider/gcp/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::provider::gcp {

namespace {

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::size_t name_length_max = 63;

std::string device_of(std::size_t n) { return fmt::format("rille-{}", n); }

// Whether a machine of that type takes persistent disks of that kind:
// https://cloud.google.com/compute/docs/disks/persistent-disks, "Machine series support"
bool takes(const std::string& machine, const std::string& kind) {
  if (std::string_view(usual_disk_kind(machine)) != "pd-balanced") return false;
  const auto is_of = [&machine](std::string_view family) { return machine.starts_with(family); };
  constexpr std::string_view no_standard[] = {"a3-", "c3-", "c3d-", "g2-", "h3-", "m3-", "z3-"};
  if (kind == "pd-standard") return std::none_of(std::begin(no_standard), std::end(no_standard), is_of);
  return kind != "pd-ssd" || !is_of("h3-");
}

}  // namespace

const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{{"pd-balanced"}, {"pd-ssd"}, {"pd-standard"}};
  return all;
}

Async<Machine> Volumes::create(CreateRequest request, std::string zone, CancelToken token) {
  Value labels = labels_, disk;
  labels.set(tag_key, request.tag).set(volume_key, "1");
  disk.set("name", cloud::resource_name(request.tag, name_length_max)).set("labels", std::move(labels));
  disk.set("sizeGb", std::to_string((request.disk_bytes + gb - 1) / gb));
  disk.set("type", fmt::format("zones/{}/diskTypes/{}", zone, volume_in(request).kind));
  if (!kms_key_.empty()) disk.set("diskEncryptionKey", Value().set("kmsKeyName", kms_key_));
  Machine made;
  made.id = zone + "/disks/" + disk.text("name");
  made.details.set("zone", zone);
  RILLE_CO_CHECK(co_await compute_.insert_disk(std::move(zone), std::move(disk), request.token, request.send_by_wall_us,
                                               std::move(token)));
  co_return made;
}

Async<> Volumes::attach(Instance instance, Machine& machine, CancelToken token) {
  std::vector<cloud::Attached> there;
  for (const std::string& disk : instance.disks) there.push_back({disk});
  cloud::Attach attach = [this, &instance, &machine](std::string name, CancelToken t) {
    return attach_one(instance, std::move(name), machine, std::move(t));
  };
  co_return co_await cloud::attach_missing(instance.volumes, std::move(there), machine, std::move(attach),
                                           std::move(token));
}

Async<> Volumes::attach_one(const Instance& instance, std::string name, Machine& machine, CancelToken token) {
  const auto at = std::find(instance.volumes.begin(), instance.volumes.end(), name);
  Value disk;
  disk.set("source", fmt::format("zones/{}/disks/{}", instance.zone, name));
  disk.set("deviceName", device_of(static_cast<std::size_t>(at - instance.volumes.begin())));
  disk.set("mode", "READ_WRITE").set("autoDelete", false);
  Result<> attached =
      co_await compute_.act(instance.zone, instance.name, "attachDisk", std::move(disk), std::move(token));
  const bool refused =
      !attached && (attached.error().kind == ErrorKind::invalid || attached.error().kind == ErrorKind::capacity);
  if (refused) machine.details.set("hopeless", true);
  co_return attached;
}

Machine Volumes::machine_of(const Disk& disk) {
  Machine m = left_over(disk.zone + "/disks/" + disk.name, disk.tag);
  if (!disk.is_volume) return m;
  m.details = Value().set("zone", disk.zone);
  if (disk.status == "READY") m.state = MachineState::live;
  else if (disk.status == "CREATING" || disk.status == "RESTORING") m.state = MachineState::pending;
  if (disk.status == "FAILED") m.details.set("problem", "its status at Google is FAILED");
  return m;
}

Result<> Volumes::check_type(const CreateRequest& request, const std::string& machine) {
  for (const Mount& mount : mounts_in(request))
    if (!takes(machine, mount.kind))
      return make_error(
          ErrorKind::capacity,
          fmt::format("{} takes no {}, and so cannot have the volume {}", machine, mount.kind, mount.own_id()),
          "rent another type, or make a volume of another kind: pd-balanced is what most types take");
  return success();
}

std::string Volumes::item_of(const CreateRequest& request) {
  std::string out;
  for (const Mount& mount : mounts_in(request)) out += (out.empty() ? "" : " ") + mount.own_id();
  return out;
}

// Google's udev rules name a disk by the name that it was attached with:
// https://cloud.google.com/compute/docs/disks/disk-symlinks
std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request))
    out.push_back({mount.at, "/dev/disk/by-id/google-" + device_of(out.size())});
  return out;
}

}  // namespace rille::provider::gcp
