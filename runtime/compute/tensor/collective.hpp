// Communication operations that exchange and reduce tensors between ranks. Such an operation is a node in program
// order, like a launch: it reads and writes its tensors at its position, is never removed, and may occur in a compiled
// function. It is sent to the lane at once, because the other ranks wait for it. So the calls of a rank run in the
// order in which they are made, no matter when the rank reads values.
//
// Errors invalid and state (a wrong call) are returned at once. Errors of the exchange (network, timeout, calls that
// differ between ranks) are returned by the next read; the tensors that the failed call should have written keep the
// error, as they may be partly written. These operations have no gradient. Threads: the graph's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/compute/collective/communicator.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

using Ranks = std::shared_ptr<collective::Communicator>;

// Whether `payload` (may be null) is a communication operation.
bool is_collective(const kernels::Payload* payload);

// all_reduce_ and broadcast_ work in place. Several tensors are sent together, as one message per type.
Result<void> all_reduce_(const Ranks& ranks, const std::vector<Tensor>& tensors, collective::Reduce how);
Result<void> broadcast_(const Ranks& ranks, const std::vector<Tensor>& tensors, int from);
// Concatenates the tensors of all ranks along the first dimension. Error invalid: a tensor without dimensions.
Result<Tensor> all_gather(const Ranks& ranks, const Tensor& t);
// Reduces, and gives each rank one part of the first dimension. Error invalid: its size is not divisible by the ranks.
Result<Tensor> reduce_scatter(const Ranks& ranks, const Tensor& t, collective::Reduce how);
Result<void> send_to(const Ranks& ranks, const Tensor& t, int to);
Result<void> receive_(const Ranks& ranks, const Tensor& t, int from);
// Sends `t` to one rank while it receives `into` from the same rank, another rank or this rank. `t` and `into` may
// differ in shape and type, and may share memory.
Result<void> sendrecv_(const Ranks& ranks, const Tensor& t, int to, const Tensor& into, int from);
Result<void> barrier(const Ranks& ranks, Graph& g);
// Averages the .grad of `parameters` over the ranks. Call it between backward and the optimiser's step. If a batch has
// several parts (Graph::Modes), only the call in the last part does something.
Result<void> average_gradients(const Ranks& ranks, const std::vector<Tensor>& parameters);

}  // namespace rille::tensor
