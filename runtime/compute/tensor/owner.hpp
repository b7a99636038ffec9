// Whose memory a tensor's is, for Device::memory_summary() and so for errors of kind memory. A tensor belongs to whom
// an OwnedBy named while it was asked for; or to whom own() gives it before it is computed; else to the operation that
// makes it. Memory that is there already stays with the owner that it was taken for. For the thread of the graph.
//
// Gradients and what is kept for them (activations) are named here in the runtime, an optimiser's state by the
// optimiser; parameters by the modules of stdlib/nn.
#pragma once

#include <string>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

inline constexpr char of_gradients[] = "gradients";
inline constexpr char of_activations[] = "activations kept for backward";

void own(const Tensor& t, const char* owner);          // a literal or interned(), as of OwnedBy
void own_unowned(const Tensor& t, const char* owner);  // where nobody has been named
// Whose a copy of it is: that of a parameter is one, too, that of a gradient is not. Null: nobody's.
const char* owner_of_copy(const Tensor& t);
// "what at train.lua:12", or only "what" where no script runs.
const char* owner_here(const Graph& g, const std::string& what);

}  // namespace rille::tensor
