// What the files that bind tensors share: the graph of this Lua state, tensors on the stack, dimensions that count from
// 1, and errors that name the script's line. A Tensor is the userdata's whole content; an empty one was freed.
// Everything here is for the loop thread.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "runtime/compute/tensor/autograd.hpp"
#include "runtime/compute/tensor/ops.hpp"
#include "runtime/core/telemetry/telemetry.hpp"

namespace rille::lua {

using namespace rille::host;
using tensor::Dims;
using tensor::Graph;
using tensor::HostData;
using tensor::Tensor;

// One per Lua state, made when the first device is asked for (so that a script without tensors starts no thread).
// A graph may call back from its lane until it is idle, so the last owner waits for that.
struct TensorState {
  std::shared_ptr<Graph> graph;     // of the device that rille.device() gives; of the CPU where there is none:
  std::optional<Error> no_default;  // its GPU cannot be used
  std::vector<std::shared_ptr<Graph>> graphs;   // of all devices that were asked for; the one above is the first
  lua_State* L = nullptr;                       // of the operation being recorded, for positions in errors
  std::shared_ptr<lua_State*> main;             // expires with the Lua state
  std::size_t handle_bytes = 0;                 // of handles made since the last collection
  std::optional<telemetry::GpuTelemetry> gpus;  // when a reading was asked for; they tell what came since
  std::optional<telemetry::CpuTelemetry> processor;
  std::string mode;                             // models in eval mode: part of every compiled function's key
  std::vector<std::function<void()>> at_close;  // before it waits for what is under way
  ~TensorState();

  bool tracing() const;  // one of them
  const Graph::Modes& modes() const { return graph->modes(); }
  void set_modes(const Graph::Modes& modes);  // of all
};

TensorState& tensor_state(lua_State* L);
// "cpu", "cuda:0": the graph of that device, made when it is asked for the first time.
Result<std::shared_ptr<Graph>> graph_on(lua_State* L, const std::string& name);
// Of the default device; raises where its GPU cannot be used.
std::shared_ptr<Graph> default_graph(lua_State* L);
Graph& graph(lua_State* L);

Error at_line(lua_State* L, Error error);          // adds " (train.lua:12)" to the message
int push_tensor(lua_State* L, Tensor t);           // tells the collector of its bytes; gives 1
Result<int> give(lua_State* L, Result<Tensor> t);  // pushes it, or fails with the line
Tensor& check_tensor(lua_State* L, int index, const char* what);
// The same of what a method is called on; behind the argument at `last` nothing but nils may stand.
Tensor& check_self(lua_State* L, const char* what, int last);
void check_end(lua_State* L, int last, const char* what);
Tensor optional_tensor(lua_State* L, int index, const char* what);  // nil: an empty handle
Tensor option_tensor(lua_State* L, int index, const char* key);     // of a table of options; no table: empty
Tensor* test_tensor(lua_State* L, int index);                       // null: not a tensor

// The parameters of an Optimizer; false: it is none.
bool optimizer_parameters(lua_State* L, int index, std::vector<Tensor>& out);

// The graph of a Device.
Graph& device_graph(lua_State* L, int index, const char* what);

// A dimension counting from 1, or from -1 backwards, as the runtime counts.
int check_dim(lua_State* L, int index, const char* what);
int dim_from(lua_State* L, double n, const char* what);
// A shape: a table's positional numbers at `index`, or the numbers from `index` on.
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* what);  // a list of them, or one
Dims check_shape(lua_State* L, int index, const char* what);
Dims check_sizes(lua_State* L, int index, const char* what);  // the same where the table has no options and is last
std::vector<int> check_dims(lua_State* L, int index, const char* what);  // nil: none; a number; a list
// Called before the dimensions at `index` are read, where a table of options may follow: x:sum({ keepdim = true })
// becomes x:sum(nil, { keepdim = true }). Raises where names stand among dimensions.
void options_may_stand_first(lua_State* L, int index, const char* what);
void push_shape(lua_State* L, const Dims& dims);
// Every string key of the table must be known, else invalid with "did you mean"; with `positions`, numbers may be keys.
void check_known(lua_State* L, int index, const char* verb, const std::vector<std::string>& known, bool positions);
const char* format_name(DType dtype);  // as safetensors files name it: "F32"
DType option_dtype(lua_State* L, int index, DType otherwise);
std::uint64_t check_seed(lua_State* L, int index, const char* what);

// Reads the tensors' values and suspends the fiber meanwhile; `push` gets them on the loop thread. One more try after a
// collection when memory ran out. The last thing a function does, like await.
using PushValues = std::function<int(lua_State*, std::vector<HostData>)>;
int await_values(lua_State* L, std::vector<Tensor> tensors, PushValues push);

// A list of { name, shape, calls, bytes, flops }, and ms where they were measured.
void push_costs(lua_State* L, const std::vector<tensor::ProfileRow>& rows);

// Parts of the opener, one per file.
void define_tensor(lua_State* L);
std::vector<Function> math_methods();
std::vector<Function> reduce_methods();
std::vector<Function> network_methods();
std::vector<Function> index_methods();
std::vector<Function> image_methods();
int tensor_element(lua_State* L);  // t[key] for a key that is no name
int tensor_assign(lua_State* L);   // t[key] = value
std::vector<Function> shape_methods();
std::vector<Function> read_methods();
std::vector<Function> masked_methods();
void set_async_methods(lua_State* L);    // those that wait: into the Tensor class
void define_device(lua_State* L);        // adds rille.device, rille.devices; `rille` at index 1
void define_communicator(lua_State* L);  // adds rille.communicator; `rille` at index 1
void add_read_natives(lua_State* L);     // to the table `rille.native` on top
void add_profile_natives(lua_State* L);
void add_tokenizer_natives(lua_State* L);
void add_optimizer_natives(lua_State* L);
void add_compile_natives(lua_State* L);
void add_data_natives(lua_State* L);
void add_array_natives(lua_State* L);
void add_checkpoint_natives(lua_State* L);

int open_tensor(lua_State* L);  // for HostOptions::open

}  // namespace rille::lua
