// Volumes: disks that outlive machines. A provider that implements VolumeSeller creates, describes, lists and
// terminates a volume by the calls that it has for machines: Machine::id is the volume's id, `live` means usable.
// terminate of a volume that a machine still has fails with `state`. A volume has no expiry. docs/design/volumes.md.
// Values and pure functions: any thread. VolumeSeller: loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

struct VolumeKind {
  std::string name;
  bool shared = false;  // several machines may have it at a time
};

struct VolumeWish {
  VolumeWish() = default;    // not an aggregate: see loop/task.hpp
  std::string kind, region;  // "": the provider's first kind; its only region
  std::int64_t size_bytes = 0;
};

class VolumeSeller {
 public:
  virtual ~VolumeSeller() = default;
  virtual const std::vector<VolumeKind>& volume_kinds() const = 0;  // empty: it has no volumes after all
  // The offers for such a volume, one per region, cheapest first; `kind` is one of volume_kinds(). Each is made by
  // volume_offer().
  virtual Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) = 0;
};

// An offer of a volume; its price is per gigabyte and hour, price_unknown: not known, 0: free.
Offer volume_offer(std::string provider, const std::string& kind, std::string region, Micros micros_per_gb_hour);

// Null: the provider has no volumes.
VolumeSeller* seller_of_volumes(Provider* provider);
// The error of a provider without volumes; it names those that have them.
Error has_no_volumes(const std::string& provider);

// What CreateRequest::extra says of a volume that is asked for.
struct VolumeTraits {
  std::string kind;
  bool shared = false, keep = true;
};
void tell_volume(Value& extra, const VolumeTraits& traits);
bool is_volume(const CreateRequest& request);
VolumeTraits volume_in(const CreateRequest& request);

// A volume that a machine gets, as CreateRequest::extra says: below its work folder, at `at`.
struct Mount {
  std::string at, id, lease, zone;  // id: the provider's; lease: the volume's
  bool shared = false;
  std::string kind = {};
  std::string own_id() const { return id.substr(id.rfind('/') + 1); }  // without the region and the like
};
void tell_mounts(Value& extra, const std::vector<Mount>& mounts);
std::vector<Mount> mounts_in(const CreateRequest& request);
// The zone of a machine that gets volumes; of_offer: the zone of its offer, "": any. Error capacity: they differ.
Result<std::string> zone_with(const std::vector<Mount>& mounts, const std::string& of_offer);

}  // namespace rille::provider
