// What the files share that bind communicators: the object, and the gradients that are exchanged by themselves while
// rille.train { communicator = } runs an update. Everything here is for the loop thread.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/collective.hpp"

namespace rille::lua {

struct CommunicatorHandle {
  tensor::Ranks ranks;  // null: closed
  std::shared_ptr<Graph> graph;
  std::string text;             // "rank 0 of 2, cpu, shared memory"
  collective::Options options;  // that it was made with
};
// Meets the other ranks; gives the object. The last thing a function does, like await.
int await_communicator(lua_State* L, collective::Options options, const std::shared_ptr<Graph>& g);

// A tensor; a list of tensors or of { tensor = }; an object whose method gives such a list; an optimizer's parameters.
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* verb, const char* method);

// Whose gradients become their mean over the ranks at the end of each backward().
struct Averaging {
  tensor::Ranks ranks;
  std::vector<Tensor> parameters;
};
// Of the update that runs now; null: gradients stay this process's own.
const Averaging* averaging(lua_State* L);

void add_rank_natives(lua_State* L);  // to the table `rille.native` on top

}  // namespace rille::lua
