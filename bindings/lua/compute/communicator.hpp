// Binds communicators for scripts, and averages gradients over the ranks by itself while an update of rille.train {
// communicator = } runs. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/collective.hpp"

namespace rille::lua {

struct CommunicatorHandle {
  tensor::Ranks ranks;  // null: the communicator is closed
  std::shared_ptr<Graph> graph;
  std::string text;             // how the script prints the communicator: "rank 0 of 2, cpu, shared memory"
  collective::Options options;  // the options that created the communicator
};
// Suspends the fiber until all ranks have joined, then returns the communicator to the script. Must be the last call
// of a C function, because a suspended fiber does not come back to it.
int await_communicator(lua_State* L, collective::Options options, const std::shared_ptr<Graph>& g);

// Reads the tensors at `index`: a tensor, a list of tensors or of { tensor = }, an object whose method `method`
// returns such a list, or an optimizer. Raises on anything else; `verb` starts the error.
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* verb, const char* method);

// Parameters whose gradients are averaged over the ranks at the end of each backward().
struct Averaging {
  tensor::Ranks ranks;
  std::vector<Tensor> parameters;
};
// The averaging of the update that runs now; null: gradients are not averaged over ranks.
const Averaging* averaging(lua_State* L);

void add_rank_natives(lua_State* L);  // adds to the table `rille.native`, which is at the stack's top

}  // namespace rille::lua
