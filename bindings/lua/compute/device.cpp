// rille.device(name) and rille.devices(): a device's fields, random state, memory and telemetry. device_make.cpp has
// the methods that create tensors.
#include <algorithm>
#include <optional>

#include "bindings/host/codec.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/lua/compute/device_make.hpp"
#include "bindings/lua/compute/kernel.hpp"
#include "bindings/lua/compute/stream.hpp"
#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/device/cuda.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::lua {

namespace {

// A device as scripts see it. Its graph is created on first use: reading the fields takes no GPU memory.
struct DeviceHandle {
  std::string name;
  std::optional<device::CudaCard> card;  // none: the device is the CPU
  std::shared_ptr<Graph> graph;          // null: the script has not used the device yet
};

Graph& opened(lua_State* L, DeviceHandle& h) {
  tensor_state(L);
  if (!h.graph) h.graph = value_or_raise(L, graph_on(L, h.name));
  return *h.graph;
}

Graph& check_device(lua_State* L, const char* what) { return opened(L, check_object<DeviceHandle>(L, 1, what)); }

int seed(lua_State* L) {
  Graph& g = check_device(L, "seed");
  if (g.tracing())
    raise(L, at_line(L, make_error(ErrorKind::state, "dev:seed was called inside a compiled function",
                                   "call dev:seed outside: a compiled function would not set the seed again")));
  g.manual_seed(check_seed(L, 2, "seed"));
  return 0;
}

int random_state(lua_State* L) {  // returns a plain table, so that checkpoints can store it
  auto s = check_device(L, "random_state").random_state();
  lua_newtable(L);
  set_field(L, "seed", static_cast<double>(s.seed));
  set_field(L, "step", static_cast<double>(s.step));
  set_field(L, "index", static_cast<double>(s.index));
  return 1;
}

int set_random_state(lua_State* L) {
  Graph& g = check_device(L, "set_random_state");
  check_table(L, 2, "set_random_state");
  auto get = [&](const char* key) { return static_cast<std::uint64_t>(option_number(L, 2, key).value_or(0)); };
  g.set_random_state({get("seed"), get("step"), static_cast<std::uint32_t>(get("index"))});
  return 0;
}

int memory(lua_State* L) {
  auto m = check_device(L, "memory").device()->memory();
  lua_newtable(L);
  set_field(L, "live", m.live_bytes);
  set_field(L, "working", m.working_bytes);
  set_field(L, "peak", m.peak_bytes);
  set_field(L, "cached", m.cached_bytes);
  set_field(L, "limit", m.limit_bytes);
  set_field(L, "buffers", m.live_buffers);
  push(L, check_device(L, "memory").device()->memory_summary());
  lua_setfield(L, -2, "summary");
  if (const auto* cuda = dynamic_cast<const device::CudaDevice*>(check_device(L, "memory").device().get())) {
    const auto [free_bytes, total_bytes] = value_or_raise(L, cuda->card_memory());
    set_field(L, "card_free", static_cast<double>(free_bytes));
    set_field(L, "card_total", static_cast<double>(total_bytes));
  }
  return 1;
}

// dev:telemetry() -> table of load, memory and temperature now
Result<int> device_telemetry(lua_State* L) {
  const auto& h = check_object<DeviceHandle>(L, 1, "telemetry");
  TensorState& state = tensor_state(L);
  if (h.card) {
    if (!state.gpus) { RILLE_TRY(state.gpus, telemetry::GpuTelemetry::open()); }
    RILLE_TRY(const Value reading, state.gpus->read(h.card->info.uuid));
    push_value(L, reading);
    return 1;
  }
  if (!state.processor) state.processor.emplace();
  push_value(L, state.processor->read());
  return 1;
}

Result<int> limit_memory(lua_State* L) {  // dev:limit_memory("2GB"); 0 removes the limit
  Graph& g = check_device(L, "limit_memory");
  std::int64_t bytes = 0;
  if (lua_type(L, 2) == LUA_TNUMBER) {
    bytes = check_integer(L, 2, "limit_memory");
  } else {
    RILLE_TRY(bytes, parse_size_bytes(check_text(L, 2, "limit_memory")));
  }
  if (bytes < 0)
    return make_error(ErrorKind::invalid, fmt::format("limit_memory: {} bytes is not a valid limit", bytes),
                      "pass a size such as \"2GB\", or 0 for no limit");
  g.device()->set_memory_limit(bytes);
  return 0;
}

int release_cache(lua_State* L) {  // waits until the device is idle, then frees the cached memory
  check_device(L, "release_cache").device()->release_cache();
  return 0;
}

int reset_peak(lua_State* L) {
  check_device(L, "reset_peak").device()->reset_peak();
  return 0;
}

int device_synchronize(lua_State* L) {
  Graph& g = check_device(L, "synchronize");
  if (g.tracing())
    raise(L, at_line(L, make_error(ErrorKind::state,
                                   "dev:synchronize was called inside a compiled function: call it outside")));
  Completion done = begin_await(L);
  g.synchronize([done](Result<void> r) {
    if (r) done.post_finish([](lua_State*) { return 0; });
    else done.post_fail(std::move(r).error());
  });
  return end_await(L);
}

// Pushes a function of a Lua module: dev:profile and its like are implemented in stdlib/device.
void push_lua(lua_State* L, const char* module, const char* name) {
  get_registry(L, &key_rille);
  lua_getfield(L, -1, module);
  lua_getfield(L, -1, name);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

constexpr const char* card_fields[] = {"model", "uuid", "bus", "architecture", "multiprocessors", "memory_bytes"};

// Pushes a field of the GPU, or nil if the device is the CPU. false: GPUs have no field `key`.
bool card_field(lua_State* L, std::string_view key, const std::optional<device::CudaCard>& card) {
  if (std::find(std::begin(card_fields), std::end(card_fields), key) == std::end(card_fields)) return false;
  if (!card) lua_pushnil(L);
  else if (key == "model") push(L, card->info.name);
  else if (key == "uuid") push(L, card->info.uuid);
  else if (key == "bus") push(L, card->info.bus);
  else if (key == "architecture") push(L, fmt::format("sm_{}", card->info.architecture));
  else if (key == "multiprocessors") push(L, card->info.multiprocessors);
  else push(L, static_cast<double>(card->info.memory_bytes));
  return true;
}

std::string description(lua_State* L, DeviceHandle& h) {
  return h.card ? device::describe(*h.card) : opened(L, h).device()->description();
}

bool device_field(lua_State* L, std::string_view key) {
  auto& h = check_object<DeviceHandle>(L, 1, "device");
  if (key == "name") push(L, h.name);
  else if (key == "kind") push(L, h.card ? "cuda" : "cpu");
  else if (key == "description") push(L, description(L, h));
  else if (key == "threads") push(L, h.card ? 0 : opened(L, h).device()->threads());
  else if (key == "profile") push_lua(L, "device.profile", "profile");
  else if (key == "check_numbers") push_lua(L, "device.check_numbers", "check_numbers");
  else if (key == "elementwise") push_lua(L, "device.elementwise", "elementwise");
  else if (key == "reduction") push_lua(L, "device.elementwise", "reduction");
  else return card_field(L, key, h.card);
  return true;
}

int device_to_string(lua_State* L) {
  auto& h = check_object<DeviceHandle>(L, 1, "device");
  push(L, fmt::format("Device {}: {}", h.name, description(L, h)));
  return 1;
}

int device_kernel_method(lua_State* L) {
  check_device(L, "kernel");
  return device_kernel(L);
}

int device_kernel_file_method(lua_State* L) {
  check_device(L, "kernel_file");
  return device_kernel_file(L);
}

char devices_key;

// Pushes the one object of this device, so that == compares devices; a registry table keeps the objects by name.
int push_device(lua_State* L, DeviceHandle handle) {
  get_registry(L, &devices_key);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    set_registry(L, &devices_key);
  }
  const std::string name = handle.name;
  lua_getfield(L, -1, name.c_str());
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    push_object(L, std::move(handle));
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name.c_str());
  }
  lua_remove(L, -2);
  return 1;
}

int push_open(lua_State* L, const std::shared_ptr<Graph>& graph) {
  DeviceHandle handle{graph->device()->name(), {}, graph};
  if (const auto* cuda = dynamic_cast<const device::CudaDevice*>(graph->device().get())) handle.card = cuda->card();
  return push_device(L, std::move(handle));
}

Result<int> device(lua_State* L) {  // rille.device(), rille.device("cuda:0")
  if (lua_isnoneornil(L, 1)) return push_open(L, default_graph(L));
  RILLE_TRY(const auto graph, graph_on(L, std::string(check_text(L, 1, "rille.device"))));
  return push_open(L, graph);
}

// Returns the CUDA devices in the driver's order, then the CPU.
Result<int> devices(lua_State* L) {
  int n = 0;
  lua_newtable(L);
  if (const auto cards = device::cuda_cards()) {
    for (const auto& card : *cards) {
      push_device(L, {fmt::format("cuda:{}", card.ordinal), card, nullptr});
      lua_rawseti(L, -2, ++n);
    }
  }
  push_device(L, {"cpu", {}, nullptr});
  lua_rawseti(L, -2, ++n);
  return 1;
}

}  // namespace

Graph& device_graph(lua_State* L, int index, const char* what) {
  return opened(L, check_object<DeviceHandle>(L, index, what));
}

void define_device(lua_State* L) {
  std::vector<Function> methods = making_methods();
  for (const Function& f : {Function{"seed", bind<seed>},
                            {"random_state", bind<random_state>},
                            {"set_random_state", bind<set_random_state>},
                            {"memory", bind<memory>},
                            {"telemetry", bind<device_telemetry>},
                            {"limit_memory", bind<limit_memory>},
                            {"release_cache", bind<release_cache>},
                            {"reset_peak", bind<reset_peak>},
                            {"stream", bind<device_stream>},
                            {"record", bind<device_record>},
                            {"wait", bind<device_wait>}})
    methods.push_back(f);
  define_class<DeviceHandle>(
      L, {.name = "Device",
          .methods = std::move(methods),
          .async_methods = {{"synchronize", bind<device_synchronize>},
                            {"kernel", bind<device_kernel_method>},
                            {"kernel_file", bind<device_kernel_file_method>}},
          .metamethods = {{"__tostring", bind<device_to_string>}},
          .field = device_field,
          .fields = {"name", "kind", "description", "threads", "profile", "check_numbers", "elementwise", "reduction",
                     "model", "uuid", "bus", "architecture", "multiprocessors", "memory_bytes"}});
  for (const Function& f : {Function{"device", bind<device>}, Function{"devices", bind<devices>}}) {
    lua_pushstring(L, f.name);
    lua_pushcfunction(L, f.function);
    lua_rawset(L, 1);
  }
}

}  // namespace rille::lua
