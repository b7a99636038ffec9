// Cloud disks that outlive machines. Each has the tag "rille-volume" beside Rille's own. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/alibaba/ecs.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::alibaba {

class Volumes {
 public:
  // `zone`, `kms_key`, `tags`: of the settings.
  Volumes(Ecs& ecs, std::string zone, std::string kms_key, Value tags)
      : ecs_(ecs), zone_(std::move(zone)), kms_key_(std::move(kms_key)), tags_(std::move(tags)) {}

  static const std::vector<VolumeKind>& kinds();
  Async<std::vector<Offer>> offers(VolumeWish wish, CancelToken token);
  Async<Machine> create(CreateRequest request, CancelToken token);
  // Attaches the volumes of a running instance that it does not have yet; until it has all, `machine` is pending. ECS
  // attaches to running and stopped instances only, so each look at the instance attaches what is missing.
  Async<> attach(Instance instance, Machine& machine, CancelToken token);

  static bool is_shown(const Disk& disk);  // false: it is shown with the machine that it is attached to
  static Machine machine_of(const Disk& disk);
  // Of a machine with volumes: the tags that name the volumes, and where the volumes appear on it.
  static Parameters tags_of(const CreateRequest& request);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  Ecs& ecs_;
  const std::string zone_, kms_key_;
  const Value tags_;
};

}  // namespace rille::provider::alibaba
