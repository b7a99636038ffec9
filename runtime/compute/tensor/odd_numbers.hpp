// Finds the operation that made the first NaN, if Graph::set_check_numbers is on. Not for bindings.
#pragma once

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// Counts of elements that are not finite, in one window; all zero for types that are not floating.
struct Odd {
  std::int64_t nans = 0, infinite = 0, count = 0;
  double low = 0, high = 0;  // smallest and largest finite value
};
Result<Odd> odd_in(device::Device& device, const kernels::View& view);  // call on the lane; waits for the device

// Call after an operation has run. Error state, code "not_a_number": the operation made a NaN, or read one that no
// checked operation made. Sets `first_infinity` to the position of the first infinity.
Result<void> check_numbers(const Node& node, const kernels::Call& call, device::Device& device,
                           std::string& first_infinity);

}  // namespace rille::tensor
