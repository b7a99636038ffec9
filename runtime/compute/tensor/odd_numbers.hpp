// Finding out which operation made the first NaN, on request (Graph::set_check_numbers). Not for bindings.
#pragma once

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// What is odd among a window's values. Windows of other than floating types have nothing odd.
struct Odd {
  std::int64_t nans = 0, infinite = 0, count = 0;
  double low = 0, high = 0;  // of the finite ones
};
Result<Odd> odd_in(device::Device& device, const kernels::View& view);  // lane; waits for the device

// After an operation has run: state, code "not_a_number", when it made a NaN, or was given one that no checked
// operation made. `first_infinity` remembers where infinity came from.
Result<void> check_numbers(const Node& node, const kernels::Call& call, device::Device& device,
                           std::string& first_infinity);

}  // namespace rille::tensor
