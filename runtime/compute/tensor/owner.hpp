// Which owner a tensor's memory is accounted to, in Device::memory_summary() and errors of kind memory: the owner given
// by own() before the tensor is computed, else the one named by an OwnedBy while it was recorded, else the operation
// that makes it. Memory already allocated keeps its owner. Threads: the graph's.
//
// The runtime names gradients and the values kept for them (activations), the optimiser names its state; the modules of
// stdlib/nn name parameters.
#pragma once

#include <string>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

inline constexpr char of_gradients[] = "gradients";
inline constexpr char of_activations[] = "activations kept for backward";

void own(const Tensor& t, const char* owner);          // `owner`: a literal or interned(), as for OwnedBy
void own_unowned(const Tensor& t, const char* owner);  // only if it has no owner yet
// The owner of a copy of `t`: a parameter's copy is a parameter, a gradient's copy is no gradient. Null: none.
const char* owner_of_copy(const Tensor& t);
// "what at train.lua:12", or only "what" if no script runs.
const char* owner_here(const Graph& g, const std::string& what);

}  // namespace rille::tensor
