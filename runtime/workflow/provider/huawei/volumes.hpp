// EVS disks that outlive servers. Each has the tag "rille-volume" beside Rille's own; a server has the ids of its
// volumes in its metadata, since the value of a tag has too little room. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/huawei/ecs.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::huawei {

inline constexpr std::string_view disk_prefix = "volume/";  // tells ids of disks from ids of servers

class Volumes {
 public:
  // `zone`, `kms_key`, `tags`: of the settings.
  Volumes(Ecs& ecs, std::string zone, std::string kms_key, Value tags)
      : ecs_(ecs), zone_(std::move(zone)), kms_key_(std::move(kms_key)), tags_(std::move(tags)) {}

  static const std::vector<VolumeKind>& kinds();
  Async<std::vector<Offer>> offers(VolumeWish wish, CancelToken token);
  Async<Machine> create(CreateRequest request, CancelToken token);
  // Attaches the volumes of a running server that it does not have yet; until it has all, `machine` is pending.
  Async<> attach(Server server, Machine& machine, CancelToken token);

  static bool is_shown(const Disk& disk);  // false: it is shown with the server that it is attached to
  static Machine machine_of(const Disk& disk);
  // Of a server with volumes: the metadata that names the volumes (null: no volumes), and where they appear on it.
  static Value metadata_of(const CreateRequest& request);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  Ecs& ecs_;
  const std::string zone_, kms_key_;
  const Value tags_;
};

}  // namespace rille::provider::huawei
