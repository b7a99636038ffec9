// Shared by the files that bind tensors: the graphs of this Lua state, tensors on the stack, dimensions that count
// from 1, and errors that name the script's line. A tensor userdata holds exactly one Tensor; after t:free() that
// Tensor is empty. Loop thread only.
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

// The tensor state of one Lua state, created with the first device, so that a script without tensors starts no
// thread. A graph's worker thread may call back until the graph is idle, so the destructor waits for it.
struct TensorState {
  std::shared_ptr<Graph> graph;                // graph of the default device, or of the CPU if no_default is set
  std::optional<Error> no_default;             // why the default GPU cannot be used
  std::vector<std::shared_ptr<Graph>> graphs;  // graphs of all devices in use; `graph` is the first
  lua_State* L = nullptr;            // Lua state of the operation being recorded; gives the position in errors
  std::shared_ptr<lua_State*> main;  // weak_ptr copies of it tell whether the Lua state still exists
  std::size_t handle_bytes = 0;      // bytes of the tensors pushed to Lua since its last garbage collection
  std::size_t collect_after_bytes = 256u << 20;
  // GPU and CPU load meters, created by the first reading; each reading covers the time since the previous one.
  std::optional<telemetry::GpuTelemetry> gpus;
  std::optional<telemetry::CpuTelemetry> processor;
  std::string mode;  // which models are in eval mode; part of every compiled function's key
  // ready when the confined kernel being compiled is done: they are compiled one after another
  std::optional<Future<bool>> compiling;
  std::vector<std::function<void()>> at_close;  // functions called before the destructor waits for pending work
  ~TensorState();

  void follow_work();    // records operations for LuaHost::work() from now on
  bool tracing() const;  // whether any graph is recording a compiled function
  const Graph::Modes& modes() const { return graph->modes(); }
  void set_modes(const Graph::Modes& modes);  // sets the modes of all graphs
};

TensorState& tensor_state(lua_State* L);
// Returns the graph of the device named "cpu" or "cuda:0"; creates it on the first request.
Result<std::shared_ptr<Graph>> graph_on(lua_State* L, const std::string& name);
// For work of the running code on other threads: counts its processor time against cpu_ms, beyond which it ends the run
// or call. Any thread. Empty: there is no such limit.
std::function<void(std::int64_t ns)> processor_time_counter(lua_State* L);
// Waits on the loop's thread, without suspending the fiber. Raises the error that ends the run: a limit of time, a
// cancel or an interrupt.
Result<void> synchronize_here(lua_State* L, Graph& g);
Result<HostData> read_here(lua_State* L, const Tensor& t);
// Returns the default device's graph; raises if the default GPU cannot be used.
std::shared_ptr<Graph> default_graph(lua_State* L);
Graph& graph(lua_State* L);

Error at_line(lua_State* L, Error error);          // adds " (train.lua:12)" to the message
int push_tensor(lua_State* L, Tensor t);           // pushes the tensor and adds its bytes to `handle_bytes`; returns 1
Result<int> give(lua_State* L, Result<Tensor> t);  // pushes the tensor; an error gets the script's line
Tensor& check_tensor(lua_State* L, int index, const char* what);
// Checks the tensor that a method is called on; arguments after index `last` must be nil.
Tensor& check_self(lua_State* L, const char* what, int last);
void check_end(lua_State* L, int last, const char* what);
Tensor optional_tensor(lua_State* L, int index, const char* what);  // the tensor at `index`; nil gives an empty Tensor
// the field `key` of the options table at `index`; an empty Tensor if there is no table
Tensor option_tensor(lua_State* L, int index, const char* key);
Tensor* test_tensor(lua_State* L, int index);  // null: the value is not a tensor

// Appends the parameters of an Optimizer to `out`; false: the value at `index` is not an Optimizer.
bool optimizer_parameters(lua_State* L, int index, std::vector<Tensor>& out);

Graph& device_graph(lua_State* L, int index, const char* what);

// Reads a dimension that counts from 1, or backwards from -1; returns the number that the C++ functions use.
int check_dim(lua_State* L, int index, const char* what);
int dim_from(lua_State* L, double n, const char* what);
std::vector<Tensor> check_tensors(lua_State* L, int index, const char* what);  // reads a tensor or a list of tensors
// Reads a shape: the positional numbers of the table at `index`, or the numbers from `index` on.
Dims check_shape(lua_State* L, int index, const char* what);
Dims check_sizes(lua_State* L, int index,
                 const char* what);  // reads a shape; the table must be the last argument and must not contain options
// nil (gives an empty list), a number or a list of numbers
std::vector<int> check_dims(lua_State* L, int index, const char* what);
// Turns x:sum({ keepdim = true }) into x:sum(nil, { keepdim = true }). Call this before reading the dimensions at
// `index` where an options table may follow. Raises if a table mixes dimensions and option names.
void options_may_stand_first(lua_State* L, int index, const char* what);
void push_shape(lua_State* L, const Dims& dims);
// Raises invalid, with "did you mean", on a string key not in `known`; `positions` allows numeric keys as well.
void check_known(lua_State* L, int index, const char* verb, const std::vector<std::string>& known, bool positions);
const char* format_name(DType dtype);  // the dtype's name in safetensors files: "F32"
DType option_dtype(lua_State* L, int index, DType otherwise);
std::uint64_t check_seed(lua_State* L, int index, const char* what);

// Reads the tensors' values while the fiber is suspended; `push` gets the values on the loop thread. If memory runs
// out, collects Lua garbage and tries once more. Must be the last call of a C function.
using PushValues = std::function<int(lua_State*, std::vector<HostData>)>;
int await_values(lua_State* L, std::vector<Tensor> tensors, PushValues push);

// Pushes a list of { name, shape, calls, bytes, flops }; rows with a measured time also have ms.
void push_costs(lua_State* L, const std::vector<tensor::ProfileRow>& rows);

// Each file of the binding defines its classes and methods with one of these functions.
std::vector<Function> math_methods();
std::vector<Function> reduce_methods();
std::vector<Function> network_methods();
std::vector<Function> index_methods();
std::vector<Function> image_methods();
int tensor_element(lua_State* L);  // implements t[key] for a key that is not a method name
int tensor_assign(lua_State* L);   // implements t[key] = value
std::vector<Function> shape_methods();
std::vector<Function> read_methods();    // these may wait
std::vector<Function> masked_methods();  // these may wait
void define_device(lua_State* L);        // adds rille.device and rille.devices; the table `rille` is at stack index 1
void define_communicator(lua_State* L);  // adds rille.communicator; the table `rille` is at stack index 1
void add_read_natives(lua_State* L);     // adds to the table `rille.native`, which is at the stack's top
void add_profile_natives(lua_State* L);
void add_tokenizer_natives(lua_State* L);
void add_optimizer_natives(lua_State* L);
void add_compile_natives(lua_State* L);
void add_data_natives(lua_State* L);
void add_array_natives(lua_State* L);
void add_data_build_natives(lua_State* L);
void add_image_set_natives(lua_State* L);
void add_checkpoint_natives(lua_State* L);

int open_tensor(lua_State* L);  // pass to HostOptions::open

}  // namespace rille::lua
