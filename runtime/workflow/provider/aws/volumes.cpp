#include "runtime/workflow/provider/aws/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::provider::aws {

namespace {

constexpr std::int64_t gib = 1LL << 30;

}  // namespace

const std::vector<VolumeKind>& Volumes::kinds() {
  static const std::vector<VolumeKind> all{{"gp3"}, {"gp2"}, {"st1"}, {"sc1"}};
  return all;
}

// The same zone each time, since a create call that is sent again must not differ.
Async<std::string> Volumes::zone_for_new(CancelToken token) {
  if (zones_.empty()) {
    RILLE_CO_TRY(const std::vector<std::string> all, co_await ec2_.zones(token));
    co_return all.front();
  }
  const Zone& first = zones_.front();
  if (!first.name.empty()) co_return first.name;
  std::vector<std::string> subnet{first.subnet};
  RILLE_CO_TRY(auto found, co_await ec2_.subnet_zones(subnet, token));
  if (found[first.subnet].empty()) co_return net::not_theirs("aws", "DescribeSubnets");
  co_return found[first.subnet];
}

Async<Machine> Volumes::create(CreateRequest request, CancelToken token) {
  RILLE_CO_TRY(const std::string zone, co_await zone_for_new(token));
  Parameters order{{"AvailabilityZone", zone},
                   {"Size", std::to_string((request.disk_bytes + gib - 1) / gib)},
                   {"VolumeType", volume_in(request).kind},
                   {"Encrypted", "true"},
                   {"ClientToken", request.token},
                   {"TagSpecification.1.ResourceType", "volume"}};
  if (!kms_key_.empty()) order.emplace_back("KmsKeyId", kms_key_);
  int n = 0;
  const auto add = [&](const std::string& key, const std::string& value) {
    const std::string at = fmt::format("TagSpecification.1.Tag.{}.", ++n);
    order.insert(order.end(), {{at + "Key", key}, {at + "Value", value}});
  };
  add(tag_key, request.tag);
  add("Name", request.tag);
  add(volume_key, "1");
  for (const auto& [key, value] : *tags_.as_object()) add(key, *value.as_string());
  RILLE_CO_TRY(const Disk made, co_await ec2_.create_disk(std::move(order), request.send_by_wall_us, token));
  Machine machine = machine_of(made);
  if (machine.details.text("zone").empty()) machine.details.set("zone", zone);
  co_return machine;
}

Async<> Volumes::attach(Instance instance, Machine& machine, CancelToken token) {
  std::vector<std::string> wanted;
  std::vector<cloud::Attached> there;
  for (const auto& [letter, volume] : instance.volumes) wanted.push_back(volume);
  for (const std::string& disk : instance.disks) there.push_back({disk});
  cloud::Attach attach = [this, &instance](std::string id, CancelToken t) {
    std::string device;
    for (const auto& [letter, volume] : instance.volumes)
      if (volume == id) device = "/dev/sd" + letter;
    return ec2_.attach(std::move(id), instance.id, std::move(device), std::move(t));
  };
  co_return co_await cloud::attach_missing(std::move(wanted), std::move(there), machine, std::move(attach),
                                           std::move(token));
}

bool Volumes::is_shown(const Disk& disk) { return disk.is_volume || disk.state == "available"; }

Machine Volumes::machine_of(const Disk& disk) {
  Machine m;
  if (!disk.is_volume && disk.state != "deleted") return left_over(disk.id, disk.tag);
  m.id = disk.id;
  m.tag = disk.tag;
  m.details.set("zone", disk.zone);
  if (disk.state == "creating") m.state = MachineState::pending;
  else if (disk.state == "available" || disk.state == "in-use") m.state = MachineState::live;
  else if (disk.state != "deleted") m.state = MachineState::terminating;
  if (disk.state == "error") m.details.set("problem", "its state at EC2 is error");
  return m;
}

// One tag for each: a tag's value has at most 256 characters, which eleven ids would fill. From /dev/sdf on, as EC2
// recommends: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html
Parameters Volumes::tags_of(const CreateRequest& request) {
  Parameters out;
  char letter = 'f';
  for (const Mount& mount : mounts_in(request)) out.emplace_back(std::string(mount_key) + letter++, mount.own_id());
  return out;
}

// EBS volumes are NVMe devices with their ids, without the hyphen, as serial numbers:
// https://docs.aws.amazon.com/ebs/latest/userguide/identify-nvme-ebs-device.html
std::vector<cloud::BootDisk> Volumes::boot_disks(const CreateRequest& request) {
  std::vector<cloud::BootDisk> out;
  for (const Mount& mount : mounts_in(request)) {
    std::string serial = mount.own_id();
    std::erase(serial, '-');
    out.push_back({mount.at, "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_" + serial});
  }
  return out;
}

}  // namespace rille::provider::aws
