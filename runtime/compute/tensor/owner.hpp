// The owner of a tensor's memory: the name under which Device::memory_summary() and memory errors count it. The owner
// is, in this order, the one set by own() before the tensor is computed, the one that an OwnedBy object named while the
// tensor was recorded, or the operation that makes the tensor. Allocated memory keeps its owner. Threads: the graph's.
//
// The runtime names gradients and the values kept for them (activations), optimisers name their state, and the modules
// of stdlib/nn name parameters.
#pragma once

#include <string>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

inline constexpr char of_gradients[] = "gradients";
inline constexpr char of_activations[] = "activations kept for backward";

void own(const Tensor& t, const char* owner);          // `owner`: a literal or a string from interned(), as for OwnedBy
void own_unowned(const Tensor& t, const char* owner);  // does nothing if `t` has an owner
// The owner for a copy of `t`: the copy of a parameter is a parameter, but the copy of a gradient is not a gradient.
// Null: none.
const char* owner_of_copy(const Tensor& t);
// Returns "`what` at train.lua:12", or only `what` if no script is running.
const char* owner_here(const Graph& g, const std::string& what);

}  // namespace rille::tensor
