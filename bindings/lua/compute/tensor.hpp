// Shared by the files that bind tensors: the graphs of this Lua state, tensors on the stack, dimensions that count
// from 1, and errors that name the script's line. The userdata holds exactly one Tensor; an empty one was freed.
// Loop thread only.
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

// One per Lua state, created with the first device, so that a script without tensors starts no thread. A graph may
// call back from its worker thread until the graph is idle, so the destructor waits.
struct TensorState {
  std::shared_ptr<Graph> graph;                // graph of the default device, or of the CPU if no_default is set
  std::optional<Error> no_default;             // why the default GPU cannot be used
  std::vector<std::shared_ptr<Graph>> graphs;  // graphs of all devices in use; `graph` is the first
  lua_State* L = nullptr;            // Lua state of the operation being recorded; gives the position in errors
  std::shared_ptr<lua_State*> main;  // expires with the Lua state
  std::size_t handle_bytes = 0;      // size of the handles made since the last collection
  // created by the first reading; a reading covers the time since the one before
  std::optional<telemetry::GpuTelemetry> gpus;
  std::optional<telemetry::CpuTelemetry> processor;
  std::string mode;                             // models in eval mode; part of every compiled function's key
  std::vector<std::function<void()>> at_close;  // called before the destructor waits for pending work
  ~TensorState();

  bool tracing() const;  // whether any graph is tracing
  const Graph::Modes& modes() const { return graph->modes(); }
  void set_modes(const Graph::Modes& modes);  // sets the modes of all graphs
};

TensorState& tensor_state(lua_State* L);
// The graph of the device "cpu" or "cuda:0", created on the first request.
Result<std::shared_ptr<Graph>> graph_on(lua_State* L, const std::string& name);
// The default device's graph; raises if its GPU cannot be used.
std::shared_ptr<Graph> default_graph(lua_State* L);
Graph& graph(lua_State* L);

Error at_line(lua_State* L, Error error);          // adds " (train.lua:12)" to the message
int push_tensor(lua_State* L, Tensor t);           // counts its bytes towards the next collection; returns 1
Result<int> give(lua_State* L, Result<Tensor> t);  // pushes the tensor, or fails with the script's line
Tensor& check_tensor(lua_State* L, int index, const char* what);
// Checks the tensor that a method is called on; arguments after index `last` must be nil.
Tensor& check_self(lua_State* L, const char* what, int last);
void check_end(lua_State* L, int last, const char* what);
Tensor optional_tensor(lua_State* L, int index, const char* what);  // nil gives an empty handle
Tensor option_tensor(lua_State* L, int index, const char* key);     // field of an options table; empty without a table
Tensor* test_tensor(lua_State* L, int index);                       // null: not a tensor

// The parameters of an Optimizer; false: the value is not an Optimizer.
bool optimizer_parameters(lua_State* L, int index, std::vector<Tensor>& out);

Graph& device_graph(lua_State* L, int index, const char* what);

// Converts a dimension that counts from 1, or backwards from -1, to the runtime's numbering.
int check_dim(lua_State* L, int index, const char* what);
int dim_from(lua_State* L, double n, const char* what);
// A shape: the positional numbers of the table at `index`, or the numbers from `index` on.
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* what);  // a tensor or a list of tensors
Dims check_shape(lua_State* L, int index, const char* what);
Dims check_sizes(lua_State* L, int index,
                 const char* what);  // reads a shape; the table is the last argument and takes no options
std::vector<int> check_dims(lua_State* L, int index, const char* what);  // nil (empty), a number or a list
// Call it before reading the dimensions at `index` if an options table may follow: turns x:sum({ keepdim = true })
// into x:sum(nil, { keepdim = true }). Raises if a table mixes dimensions and names.
void options_may_stand_first(lua_State* L, int index, const char* what);
void push_shape(lua_State* L, const Dims& dims);
// Raises invalid, with "did you mean", on an unknown string key; `positions` allows numeric keys as well.
void check_known(lua_State* L, int index, const char* verb, const std::vector<std::string>& known, bool positions);
const char* format_name(DType dtype);  // the name in safetensors files: "F32"
DType option_dtype(lua_State* L, int index, DType otherwise);
std::uint64_t check_seed(lua_State* L, int index, const char* what);

// Reads the tensors' values while the fiber is suspended; `push` gets them on the loop thread. If memory ran out,
// collects garbage and tries once more. Must be the last call of a function, like await.
using PushValues = std::function<int(lua_State*, std::vector<HostData>)>;
int await_values(lua_State* L, std::vector<Tensor> tensors, PushValues push);

// Pushes a list of { name, shape, calls, bytes, flops }, with ms where it was measured.
void push_costs(lua_State* L, const std::vector<tensor::ProfileRow>& rows);

// Parts of the opener, one per file.
void define_tensor(lua_State* L);
std::vector<Function> math_methods();
std::vector<Function> reduce_methods();
std::vector<Function> network_methods();
std::vector<Function> index_methods();
std::vector<Function> image_methods();
int tensor_element(lua_State* L);  // t[key] where the key is not a name
int tensor_assign(lua_State* L);   // t[key] = value
std::vector<Function> shape_methods();
std::vector<Function> read_methods();
std::vector<Function> masked_methods();
void set_async_methods(lua_State* L);    // adds the methods that suspend to the Tensor class
void define_device(lua_State* L);        // adds rille.device, rille.devices; `rille` at index 1
void define_communicator(lua_State* L);  // adds rille.communicator; `rille` at index 1
void add_read_natives(lua_State* L);     // into the table `rille.native` at the stack's top
void add_profile_natives(lua_State* L);
void add_tokenizer_natives(lua_State* L);
void add_optimizer_natives(lua_State* L);
void add_compile_natives(lua_State* L);
void add_data_natives(lua_State* L);
void add_array_natives(lua_State* L);
void add_checkpoint_natives(lua_State* L);

int open_tensor(lua_State* L);  // for HostOptions::open

}  // namespace rille::lua
