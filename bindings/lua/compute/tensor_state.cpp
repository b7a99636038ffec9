// Creates the graphs of a Lua state: one for the default device and one for each device requested by name.
#include <algorithm>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/device/cpu.hpp"
#include "runtime/compute/device/cuda.hpp"
#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/compute/device/default_device.hpp"
#include "runtime/compute/device/kernel_files.hpp"

namespace rille::lua {

namespace {

char tensor_state_key;

}  // namespace

TensorState::~TensorState() {
  for (const auto& f : at_close) f();
  for (const auto& g : graphs) {
    g->set_where({});
    // After the destructor no callback may come. The second pass completes event waits that the first pass started
    // again.
    for (int i = 0; i < 2; ++i) g->synchronize_blocking().ok();
  }
}

bool TensorState::tracing() const {
  return std::any_of(graphs.begin(), graphs.end(), [](const auto& g) { return g->tracing(); });
}

void TensorState::set_modes(const Graph::Modes& modes) {
  for (const auto& g : graphs) g->set_modes(modes);
}

namespace {

Result<std::shared_ptr<Graph>> make_graph(TensorState& state, std::shared_ptr<device::Device> device) {
  RILLE_TRY(auto made, Graph::create(std::move(device)));
  made->set_where([s = &state] { return s->L ? script_position(s->L) : std::string("?"); });
  state.graphs.push_back(made);
  return made;
}

// Announces a wait of minutes: if no prebuilt kernel image matches, the first operation compiles the kernels.
void tell_compiling(lua_State* L, const device::CudaCard& card) {
  LuaHost& host = LuaHost::of(L);
  const auto driver = device::cuda_driver();
  if (!driver || !host.has_run() || !host.control().hooks().event) return;
  const auto from = device::kernels_from(card, *driver);
  if (!from || *from != device::KernelsFrom::compiler) return;
  host.control().hooks().event(
      Value()
          .set("event", "warning")
          .set("what", "rille.device")
          .set("message",
               fmt::format("the first operation on cuda:{} compiles Rille's kernels for sm_{}, which takes a minute "
                           "of processor time, once: they are kept in {}",
                           card.ordinal, card.info.architecture, device::KernelFiles::default_directory())));
}

Result<std::shared_ptr<device::Device>> open_device(lua_State* L, const std::string& name) {
  if (name == "cpu") return std::shared_ptr<device::Device>(device::CpuDevice::create(device::Lane::shared()));
  RILLE_TRY(auto opened, device::CudaDevice::open(name));
  tell_compiling(L, opened->card());
  return std::shared_ptr<device::Device>(std::move(opened));
}

}  // namespace

Result<std::shared_ptr<Graph>> graph_on(lua_State* L, const std::string& name) {
  TensorState& state = tensor_state(L);
  for (const auto& g : state.graphs)
    if (g->device()->name() == (name == "cuda" ? "cuda:0" : name)) return g;
  if (name != "cpu" && name != "cuda" && !name.starts_with("cuda:")) {
    return make_error(ErrorKind::invalid, fmt::format("there is no device '{}'", name),
                      "rille.device(), rille.device(\"cpu\"), rille.device(\"cuda:0\")");
  }
  RILLE_TRY(auto device, open_device(L, name));
  for (const auto& g : state.graphs)
    // the requested name was the GPU's uuid; its graph exists already
    if (g->device()->name() == device->name()) return g;
  RILLE_TRY(auto made, make_graph(state, std::move(device)));
  made->set_modes(state.modes());
  return made;
}

TensorState& tensor_state(lua_State* L) {
  get_registry(L, &tensor_state_key);
  auto* state = test_object<TensorState>(L, -1);
  lua_pop(L, 1);
  if (!state) {
    TensorState fresh;
    fresh.main = std::make_shared<lua_State*>(LuaHost::of(L).lua());
    const auto name = device::default_device();
    auto opened = name ? open_device(L, *name) : Result<std::shared_ptr<device::Device>>(name.error());
    if (!opened) {
      fresh.no_default = opened.error();
      opened = open_device(L, "cpu");
    }
    auto device = value_or_raise(L, std::move(opened));
    state = &push_object(L, std::move(fresh));
    state->graph = value_or_raise(L, make_graph(*state, std::move(device)));
    set_registry(L, &tensor_state_key);
  }
  state->L = L;
  return *state;
}

std::shared_ptr<Graph> default_graph(lua_State* L) {
  const TensorState& state = tensor_state(L);
  if (state.no_default) raise(L, at_line(L, *state.no_default));
  return state.graph;
}

Graph& graph(lua_State* L) { return *default_graph(L); }

}  // namespace rille::lua
