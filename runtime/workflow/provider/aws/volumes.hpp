// EBS volumes that outlive machines. Each has the tag "rille-volume" beside Rille's own; an instance has a tag for each
// of its volumes, "rille-volume-f" for /dev/sdf. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/zones.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::aws {

class Volumes {
 public:
  // `zones`, `kms_key`, `tags`: of the settings.
  Volumes(Ec2& ec2, std::vector<Zone> zones, std::string kms_key, Value tags)
      : ec2_(ec2), zones_(std::move(zones)), kms_key_(std::move(kms_key)), tags_(std::move(tags)) {}

  static const std::vector<VolumeKind>& kinds();
  Async<Machine> create(CreateRequest request, CancelToken token);
  // Attaches the volumes of a running instance that it does not have yet; until it has all, `machine` is pending. EC2
  // attaches to running instances only, so whoever looks at the instance does it.
  Async<> attach(Instance instance, Machine& machine, CancelToken token);

  static bool is_shown(const Disk& disk);  // false: it is shown with the machine that it is attached to
  static Machine machine_of(const Disk& disk);
  // Of a machine with volumes: the tags that name the volumes, and where the volumes appear on it.
  static Parameters tags_of(const CreateRequest& request);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  Async<std::string> zone_for_new(CancelToken token);

  Ec2& ec2_;
  const std::vector<Zone> zones_;
  const std::string kms_key_;
  const Value tags_;
};

}  // namespace rille::provider::aws
