// What is said of a lease whose time is over; in a header of its own because few say it.
#pragma once

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// state, code `ttl_over`: it was wanted for longer than it was rented for, or than its budgets had money for.
Error ttl_over(const Lease& lease);

}  // namespace rille::lease
