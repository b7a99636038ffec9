#include "runtime/workflow/provider/azure/volumes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/text.hpp"
#include "runtime/workflow/provider/lifetime.hpp"

namespace rille::provider::azure {

namespace {

constexpr std::int64_t gb = 1'000'000'000;

}  // namespace

const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{{"Premium_LRS"}, {"StandardSSD_LRS"}, {"Standard_LRS"}};
  return all;
}

bool Volumes::is_name(const std::string& disk) { return disk.ends_with(volume_end); }

// A second identical PUT changes nothing, so an earlier send may have made it.
Async<Machine> Volumes::create(CreateRequest request, Value disk, std::string name, CancelToken token) {
  Value properties;
  properties.set("creationData", Value().set("createOption", "Empty"));
  properties.set("diskSizeGB", (request.disk_bytes + gb - 1) / gb);
  if (!encryption_set_.empty())
    properties.set("encryption",
                   Value().set("type", "EncryptionAtRestWithCustomerKey").set("diskEncryptionSetId", encryption_set_));
  disk.set("sku", Value().set("name", volume_in(request).kind)).set("properties", std::move(properties));
  if (!zone_.empty()) disk.set("zones", Value::Array{Value(zone_)});
  Machine made;
  made.id = fmt::format("{}/{}", disks, name);
  made.details.set("zone", zone_);
  RILLE_CO_CHECK(co_await arm_.put(std::string(disks), std::move(name), std::move(disk), request.send_by_wall_us,
                                   std::move(token)));
  co_return made;
}

Machine Volumes::machine_of(const Resource& disk) {
  Machine m;
  m.id = fmt::format("{}/{}", disks, disk.name);
  m.tag = disk.tag;
  m.details.set("zone", disk.zone);
  if (disk.provisioning == "Failed") m.details.set("problem", "its provisioning state at Azure is Failed");
  const bool ends = disk.provisioning == "Failed" || disk.provisioning == "Deleting";
  m.state = ends                               ? MachineState::terminating
            : disk.provisioning == "Succeeded" ? MachineState::live
                                               : MachineState::pending;
  return m;
}

Async<> Volumes::attach(VirtualMachine vm, Machine& machine, CancelToken token) {
  std::vector<Attached> missing;
  std::vector<std::string> names;
  for (const Attached& volume : vm.volumes) {
    const auto is_it = [&](const std::string& d) { return net::lower_case(d) == net::lower_case(volume.disk); };
    if (std::any_of(vm.disks.begin(), vm.disks.end(), is_it)) continue;
    missing.push_back(volume);
    names.push_back(volume.disk);
  }
  if (missing.empty()) co_return success();
  machine.state = MachineState::pending;
  mark_costs(machine);
  const Result<> attached = co_await arm_.attach(vm.name, std::move(missing), token);
  if (attached) co_return success();
  const Error& why = attached.error();
  if (token.cancelled() || why.kind == ErrorKind::auth) co_return why;
  machine.details.set("problem", fmt::format("its volume {} is not attached: {}", fmt::join(names, ", "), why.message));
  if (why.http_status == 404 || why.kind == ErrorKind::invalid) machine.details.set("hopeless", true);
  co_return success();
}

Result<> Volumes::check_zone(const CreateRequest& request) const {
  for (const Mount& mount : mounts_in(request))
    if (mount.zone != zone_)
      return make_error(ErrorKind::capacity,
                        fmt::format("the volume {} is in {}, and the machines of {} are in {}", mount.own_id(),
                                    mount.zone.empty() ? "no zone" : "zone " + mount.zone, arm_.region(),
                                    zone_.empty() ? "none" : zone_),
                        "set `zone` of the provider's settings as it was when the volume was made");
  return success();
}

void Volumes::add_tags(Value& tags, const CreateRequest& request) {
  int unit = 0;
  for (const Mount& mount : mounts_in(request)) tags.set(fmt::format("{}{}", mount_key, unit++), mount.own_id());
}

// The links of Azure's Linux agent, of azure-vm-utils, and without them the namespace of a machine whose remote disks
// are NVMe: https://learn.microsoft.com/azure/virtual-machines/enable-nvme-interface
std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request)) {
    const std::size_t unit = out.size();
    out.push_back({mount.at, fmt::format("/dev/disk/azure/scsi1/lun{0} /dev/disk/azure/data/by-lun/{0} /dev/nvme0n{1}",
                                         unit, unit + 2)});
  }
  return out;
}

}  // namespace rille::provider::azure
