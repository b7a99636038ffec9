// Tensors that several ranks exchange and reduce (collective). An operation of a communicator is a node in
// program order, like a launch: it reads and writes its tensors in its place, is never removed, and may stand inside a
// compiled function. It is sent to the lane at once, since the other ranks wait for it. So a rank's calls run in the
// order in which it makes them, whatever it reads and when.
//
// Errors at once: invalid and state, what cannot be. The ranks' own (network, timeout, calls that differ) come with the
// next read, and stay with the tensors that the call was to write: a part may be written. Nothing here has a gradient.
// Threads: the graph's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/compute/collective/communicator.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

using Ranks = std::shared_ptr<collective::Communicator>;

// Whether this operation of a node, or null, is a communicator's.
bool is_collective(const kernels::Payload* payload);

// In place. Several tensors go together, as one message for each type among them.
Result<void> all_reduce_(const Ranks& ranks, const std::vector<Tensor>& tensors, collective::Reduce how);
Result<void> broadcast_(const Ranks& ranks, const std::vector<Tensor>& tensors, int from);
// The ranks' tensors behind each other, along the first dimension. invalid: one without dimensions.
Result<Tensor> all_gather(const Ranks& ranks, const Tensor& t);
// Reduces, and gives each rank its part of the first dimension. invalid: it cannot be divided by the ranks.
Result<Tensor> reduce_scatter(const Ranks& ranks, const Tensor& t, collective::Reduce how);
Result<void> send_to(const Ranks& ranks, const Tensor& t, int to);
Result<void> receive_(const Ranks& ranks, const Tensor& t, int from);
Result<void> barrier(const Ranks& ranks, Graph& g);
// The gradients of these become their mean over the ranks: between backward and the optimiser's step. Of a batch in
// several parts only with the last one.
Result<void> average_gradients(const Ranks& ranks, const std::vector<Tensor>& parameters);

}  // namespace rille::tensor
