// Shared by the files that bind communicators: the object, and automatic gradient averaging while rille.train {
// communicator = } runs an update. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/collective.hpp"

namespace rille::lua {

struct CommunicatorHandle {
  tensor::Ranks ranks;  // null: closed
  std::shared_ptr<Graph> graph;
  std::string text;             // "rank 0 of 2, cpu, shared memory"
  collective::Options options;  // the options it was made with
};
// Waits for the other ranks; returns the object. Must be the last call of a function, like await.
int await_communicator(lua_State* L, collective::Options options, const std::shared_ptr<Graph>& g);

// Accepts a tensor, a list of tensors or of { tensor = }, an object whose method returns such a list, or an optimizer.
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* verb, const char* method);

// Parameters whose gradients are averaged over the ranks at the end of each backward().
struct Averaging {
  tensor::Ranks ranks;
  std::vector<Tensor> parameters;
};
// The averaging of the current update; null: gradients are not exchanged.
const Averaging* averaging(lua_State* L);

void add_rank_natives(lua_State* L);  // into the table `rille.native` at the stack's top

}  // namespace rille::lua
