// CBS disks that outlive machines. Each has the tag "rille-volume" beside Rille's own. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/tencent/cbs.hpp"
#include "runtime/workflow/provider/tencent/cvm.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::tencent {

class Volumes {
 public:
  // `zone`, `currency`, `tags`: of the settings.
  Volumes(Cbs& cbs, std::string region, std::string zone, std::string currency, Value tags)
      : cbs_(cbs), region_(std::move(region)), zone_(std::move(zone)), currency_(std::move(currency)),
        tags_(std::move(tags)) {}

  static const std::vector<VolumeKind>& kinds();
  Async<std::vector<Offer>> offers(VolumeWish wish, CancelToken token);
  Async<Machine> create(CreateRequest request, CancelToken token);
  // Attaches the volumes of a running instance that it does not have yet; until it has all, `machine` is pending.
  // RunInstances takes new disks only.
  Async<> attach(Instance instance, Machine& machine, CancelToken token);

  static bool is_shown(const Disk& disk);  // false: it is shown with the machine that it is attached to
  static Machine machine_of(const Disk& disk);
  // Of a machine with volumes: adds the tags that name the volumes; where the volumes appear on it.
  static void add_tags(const CreateRequest& request, Value::Array& tags);
  static std::vector<cloud::BootDisk> boot_disks(const CreateRequest& request);

 private:
  Cbs& cbs_;
  const std::string region_, zone_, currency_;
  const Value tags_;
};

}  // namespace rille::provider::tencent
