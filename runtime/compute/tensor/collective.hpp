// Tensors that several ranks exchange and reduce (collective). An operation of a communicator is a node in program
// order, like a launch: it reads and writes its tensors in its place, is never removed, and may appear in a compiled
// function. It is sent to the lane at once because the other ranks wait for it. A rank's calls therefore run in the
// order in which it makes them, whatever it reads and when.
//
// Errors: invalid and state (an impossible call) are returned at once. Errors of the exchange (network, timeout, calls
// that differ between ranks) are returned by the next read. The tensors that the failed call should have written keep
// the error, as they may be partly written. None of these operations has a gradient. Threads: the graph's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/compute/collective/communicator.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

using Ranks = std::shared_ptr<collective::Communicator>;

// Whether `payload`, which may be null, is a communicator's operation.
bool is_collective(const kernels::Payload* payload);

// In place. Several tensors are sent together, as one message per type.
Result<void> all_reduce_(const Ranks& ranks, const std::vector<Tensor>& tensors, collective::Reduce how);
Result<void> broadcast_(const Ranks& ranks, const std::vector<Tensor>& tensors, int from);
// Concatenates the ranks' tensors along the first dimension. invalid: a tensor without dimensions.
Result<Tensor> all_gather(const Ranks& ranks, const Tensor& t);
// Reduces and gives each rank its part of the first dimension. invalid: that size is not divisible by the ranks.
Result<Tensor> reduce_scatter(const Ranks& ranks, const Tensor& t, collective::Reduce how);
Result<void> send_to(const Ranks& ranks, const Tensor& t, int to);
Result<void> receive_(const Ranks& ranks, const Tensor& t, int from);
Result<void> barrier(const Ranks& ranks, Graph& g);
// Averages the .grad of `parameters` over the ranks. Call it between backward and the optimiser's step. For a batch in
// several parts (Graph::Modes) it acts with the last part only.
Result<void> average_gradients(const Ranks& ranks, const std::vector<Tensor>& parameters);

}  // namespace rille::tensor
