// UsualDisk: a provider that orders a disk with every machine, even if the rent names none, and bills it separately.
// The price per gigabyte is in the offer or in the settings (`disk_price`). Loop thread only.
#pragma once

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class UsualDisk {
 public:
  virtual ~UsualDisk() = default;
  // The size of the disk that is ordered with a machine of that offer; 0: no disk, or a free one.
  virtual std::int64_t usual_disk_bytes(const Offer& offer) const = 0;
};

inline std::int64_t usual_disk_bytes(const Provider* provider, const Offer& offer) {
  const UsualDisk* const orders = dynamic_cast<const UsualDisk*>(provider);
  return orders ? orders->usual_disk_bytes(offer) : 0;
}

}  // namespace rille::provider
