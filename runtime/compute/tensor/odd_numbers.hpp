// Finds the operation that made the first NaN, on request (Graph::set_check_numbers). Not for bindings.
#pragma once

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// Counts of non-finite values in a window; zeros for types that are not floating.
struct Odd {
  std::int64_t nans = 0, infinite = 0, count = 0;
  double low = 0, high = 0;  // range of the finite values
};
Result<Odd> odd_in(device::Device& device, const kernels::View& view);  // lane; waits for the device

// Call after an operation has run. state, code "not_a_number": it made a NaN, or read one that no checked operation
// made. `first_infinity` stores where the first infinity came from.
Result<void> check_numbers(const Node& node, const kernels::Call& call, device::Device& device,
                           std::string& first_infinity);

}  // namespace rille::tensor
