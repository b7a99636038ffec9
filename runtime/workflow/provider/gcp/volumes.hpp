// Persistent disks that outlive machines. Each has the label "rille-volume" beside Rille's own; an instance's metadata
// name its volumes ("rille-volumes"), and the n-th of them, from 0, is its device "rille-n". Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/gcp/compute.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::gcp {

class Volumes {
 public:
  // `kms_key`, `labels`: of the settings.
  Volumes(Compute& compute, std::string kms_key, Value labels)
      : compute_(compute), kms_key_(std::move(kms_key)), labels_(std::move(labels)) {}

  static const std::vector<VolumeKind>& kinds();
  Async<Machine> create(CreateRequest request, std::string zone, CancelToken token);
  // Attaches the volumes of a running instance that it does not have yet; until it has all, `machine` is pending. A
  // disk that another instance has still would make the instance's own creation fail, so whoever looks at it does it.
  Async<> attach(Instance instance, Machine& machine, CancelToken token);

  static Machine machine_of(const Disk& disk);
  // Error capacity: a machine of that type takes no disk of a volume's kind.
  static Result<> check_type(const CreateRequest& request, const std::string& machine);
  // Of a machine with volumes: the value of volumes_item, "": it has none; and where the volumes appear on it.
  static std::string item_of(const CreateRequest& request);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  // Tells `machine` if a second try would be refused, too.
  Async<> attach_one(const Instance& instance, std::string name, Machine& machine, CancelToken token);

  Compute& compute_;
  const std::string kms_key_;
  const Value labels_;
};

}  // namespace rille::provider::gcp
