// Managed disks that outlive machines, by their names: "TAG-volume". A virtual machine has a tag for each of its
// volumes, "rille-volume-0" for the logical unit 0. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/azure/arm.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::azure {

class Volumes {
 public:
  // `zone`, `encryption_set`: of the settings.
  Volumes(Arm& arm, std::string zone, std::string encryption_set)
      : arm_(arm), zone_(std::move(zone)), encryption_set_(std::move(encryption_set)) {}

  static const std::vector<VolumeKind>& kinds();
  static bool is_name(const std::string& disk);
  // `disk`: its location and tags.
  Async<Machine> create(CreateRequest request, Value disk, std::string name, CancelToken token);
  static Machine machine_of(const Resource& disk);

  // Attaches the volumes of a running machine that it does not have yet; until it has all, `machine` is pending. A disk
  // that another machine has still would make the machine's own creation fail, so whoever looks at it does it.
  Async<> attach(VirtualMachine vm, Machine& machine, CancelToken token);
  // Error capacity: a volume is in another zone than the machines.
  Result<> check_zone(const CreateRequest& request) const;
  // Of a machine with volumes: adds the tags that name them; and where they appear on it.
  static void add_tags(Value& tags, const CreateRequest& request);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  Arm& arm_;
  const std::string zone_, encryption_set_;
};

inline constexpr const char* volume_end = "-volume";  // of a volume's name

}  // namespace rille::provider::azure
