// The error of a lease whose ttl has passed. It has its own header because few files need it.
#pragma once

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// state, code `ttl_over`: the lease was needed for longer than it was rented for, or than its budgets could pay.
Error ttl_over(const Lease& lease);

}  // namespace rille::lease
