// The error of a lease whose ttl has passed. It has its own header because few files need it.
#pragma once

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// The error of kind `state` with code `ttl_over`. It says whether the ttl was too short or a budget shortened it.
Error ttl_over(const Lease& lease);

}  // namespace rille::lease
