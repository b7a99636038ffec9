// rille.device(name) and rille.devices(): where tensors are made. dev:randn{2, 3, dtype = "f32"}: positional numbers
// are the shape, names are options.
#include <algorithm>
#include <cmath>
#include <optional>

#include "bindings/host/codec.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/lua/kernel.hpp"
#include "bindings/lua/stream.hpp"
#include "bindings/lua/tensor.hpp"
#include "runtime/base/units.hpp"
#include "runtime/device/cuda.hpp"
#include "runtime/device/owner.hpp"
#include "runtime/tensor/owner.hpp"

namespace rille::lua {

namespace {

// A CUDA device is opened when something is done with it: to look at it costs nothing of it.
struct DeviceHandle {
  std::string name;
  std::optional<device::CudaCard> card;      // none: the CPU
  std::shared_ptr<Graph> graph;              // when it is open
};

Graph& opened(lua_State* L, DeviceHandle& h) {
  tensor_state(L);
  if (!h.graph) h.graph = value_or_raise(L, graph_on(L, h.name));
  return *h.graph;
}

Graph& self(lua_State* L, const char* what) { return opened(L, check_object<DeviceHandle>(L, 1, what)); }

// dev:zeros{2, 3, dtype = "i64"} is how it is written. Who comes from elsewhere writes dev:zeros(2, 3) or
// dev:zeros({2, 3}, {dtype = "i64"}), which become that here.
void gather(lua_State* L, const char* what) {
  while (lua_gettop(L) > 2 && lua_isnil(L, -1)) lua_pop(L, 1);
  const int top = lua_gettop(L);
  if (top < 2 || (top == 2 && lua_istable(L, 2))) return;
  const bool options_last = top > 2 && lua_istable(L, top);
  lua_newtable(L);
  const int all = top + 1;
  int listed = 0;
  auto copy = [&](int from) {
    for (lua_pushnil(L); lua_next(L, from);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_settable(L, all);
    }
  };
  for (int i = 2; i <= top; ++i) {
    const bool names = i == top && options_last;
    const bool fits = names || (lua_istable(L, i) ? i == 2 && top == 3 : lua_isnumber(L, i) && !lua_istable(L, 2));
    if (!fits)
      raise_invalid(L, fmt::format("{}: argument {} is {} ({})", what, i - 1, describe(L, i), script_position(L)),
                    fmt::format("dev:{}{{2, 3, dtype = \"f32\"}}: numbers and options in one table", what));
    if (names && lua_objlen(L, i) > 0)
      raise_invalid(L, fmt::format("{}: numbers in the table of options ({})", what, script_position(L)),
                    fmt::format("dev:{}{{2, 3, dtype = \"f32\"}}: numbers and options in one table", what));
    if (lua_istable(L, i)) {
      copy(i);
    } else {
      lua_pushvalue(L, i);
      lua_rawseti(L, all, ++listed);
    }
  }
  lua_replace(L, 2);
  lua_settop(L, 2);
}

// Its memory is told as "randn at train.lua:12".
Result<int> made(lua_State* L, const char* verb, Result<Tensor> t) {
  if (t) tensor::own(*t, tensor::owner_here(t->graph(), verb));
  if (t && lua_istable(L, 2) && option_bool(L, 2, "requires_grad", false)) RILLE_CHECK(t->set_requires_grad(true));
  return give(L, std::move(t));
}

struct Maker { const char* name; Result<Tensor> (*fn)(Graph&, const Dims&, DType); };

template <const Maker& M>
Result<int> make(lua_State* L) {
  Graph& g = self(L, M.name);
  gather(L, M.name);
  if (lua_istable(L, 2)) check_known(L, 2, M.name, {"dtype", "requires_grad"}, true);
  return made(L, M.name, M.fn(g, check_shape(L, 2, M.name), option_dtype(L, 2, DType::f32)));
}

constexpr Maker zeros_{"zeros", tensor::zeros}, ones_{"ones", tensor::ones}, rand_{"rand", tensor::rand},
    randn_{"randn", tensor::randn};

Result<int> full(lua_State* L) {  // dev:full{2, 3, value = 7}
  Graph& g = self(L, "full");
  gather(L, "full");
  check_table(L, 2, "full");
  check_known(L, 2, "full", {"value", "dtype", "requires_grad"}, true);
  auto value = option_number(L, 2, "value");
  if (!value) raise_invalid(L, "full: the value is missing", "dev:full{2, 3, value = 7}");
  return made(L, "full", tensor::full(g, check_shape(L, 2, "full"), *value, option_dtype(L, 2, DType::f32)));
}

Result<int> randint(lua_State* L) {  // dev:randint{2, 3, low = 0, high = 10}
  Graph& g = self(L, "randint");
  gather(L, "randint");
  check_table(L, 2, "randint");
  check_known(L, 2, "randint", {"low", "high", "dtype"}, true);
  auto high = option_number(L, 2, "high");
  if (!high)
    raise_invalid(L, "randint: the upper bound is missing",
                  "dev:randint{2, 3, low = 0, high = 10}: the bound itself is not drawn");
  auto low = static_cast<std::int64_t>(option_number(L, 2, "low").value_or(0));
  return made(L, "randint", tensor::randint(g, low, static_cast<std::int64_t>(*high), check_shape(L, 2, "randint"),
                                            option_dtype(L, 2, DType::i64)));
}

Result<int> arange(lua_State* L) {  // dev:arange{stop}, {start, stop}, {start, stop, step}; the stop itself is left out
  Graph& g = self(L, "arange");
  gather(L, "arange");
  check_table(L, 2, "arange");
  check_known(L, 2, "arange", {"dtype"}, true);
  double v[3] = {0, 0, 1};
  std::size_t n = lua_objlen(L, 2);
  if (n < 1 || n > 3) raise_invalid(L, "arange: expected one to three numbers", "dev:arange{start, stop, step}");
  for (std::size_t i = 0; i < n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i + 1));
    v[n == 1 ? 1 : i] = check_number(L, -1, "arange");
    lua_pop(L, 1);
  }
  bool whole = v[0] == std::floor(v[0]) && v[1] == std::floor(v[1]) && v[2] == std::floor(v[2]);
  const DType dtype = option_dtype(L, 2, whole ? DType::i64 : DType::f32);
  return made(L, "arange", tensor::arange(g, v[0], v[1], v[2], dtype));
}

Result<int> linspace(lua_State* L) {  // dev:linspace{start, stop, count}: the stop itself is the last
  Graph& g = self(L, "linspace");
  gather(L, "linspace");
  check_table(L, 2, "linspace");
  check_known(L, 2, "linspace", {"dtype"}, true);
  double v[3];
  if (lua_objlen(L, 2) != 3)
    raise_invalid(L, "linspace: expected three numbers", "dev:linspace{start, stop, count}");
  for (int i = 0; i < 3; ++i) {
    lua_rawgeti(L, 2, i + 1);
    v[i] = i < 2 ? check_number(L, -1, "linspace") : double(check_integer(L, -1, "linspace's count"));
    lua_pop(L, 1);
  }
  const DType dtype = option_dtype(L, 2, DType::f32);
  return made(L, "linspace", tensor::linspace(g, v[0], v[1], std::int64_t(v[2]), dtype));
}

Result<int> eye(lua_State* L) {  // dev:eye{rows} or {rows, columns}
  Graph& g = self(L, "eye");
  gather(L, "eye");
  check_table(L, 2, "eye");
  check_known(L, 2, "eye", {"dtype", "requires_grad"}, true);
  Dims size = check_shape(L, 2, "eye");
  if (size.n < 1 || size.n > 2) raise_invalid(L, "eye: expected one or two sizes", "dev:eye{3}, dev:eye{3, 4}");
  return made(L, "eye", tensor::eye(g, size[0], size[size.n - 1], option_dtype(L, 2, DType::f32)));
}

Result<int> rope_angles(lua_State* L) {  // dev:rope_angles{positions, width, base = 10000} -> cosines, sines
  Graph& g = self(L, "rope_angles");
  gather(L, "rope_angles");
  check_table(L, 2, "rope_angles");
  check_known(L, 2, "rope_angles", {"base", "dtype"}, true);
  Dims size = check_shape(L, 2, "rope_angles");
  if (size.n != 2) raise_invalid(L, "rope_angles: expected two numbers", "dev:rope_angles{positions, width}");
  double base = option_number(L, 2, "base").value_or(10000);
  auto angles = tensor::rope_angles(g, size[0], size[1], base, option_dtype(L, 2, DType::f32));
  if (!angles) return at_line(L, std::move(angles).error());
  return push_tensor(L, std::move(angles->cos)) + push_tensor(L, std::move(angles->sin));
}

// A list without holes and names: what lies behind a nil would be left out in silence.
void check_list(lua_State* L, std::int64_t n) {
  std::int64_t entries = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) ++entries;
  if (entries != n)
    raise_invalid(L, fmt::format("tensor: a table with {} values, of which {} are a list from 1 on ({})", entries, n,
                                 script_position(L)),
                  "a list has neither nil in it nor names; options are a table of their own: "
                  "dev:tensor({ 1, 2 }, { dtype = \"i64\" })");
}

// Reads nested lists of equal length; the first path down tells the shape.
void read_nested(lua_State* L, int dim, std::vector<std::int64_t>& shape, std::vector<double>& out, bool& booleans) {
  if (!lua_istable(L, -1)) {
    if (dim != static_cast<int>(shape.size()))
      raise_invalid(L, fmt::format("tensor: a list was expected in dimension {}, got {}", dim + 1, describe(L, -1)));
    booleans = booleans && lua_isboolean(L, -1);
    if (lua_isboolean(L, -1)) out.push_back(lua_toboolean(L, -1));
    else out.push_back(check_number(L, -1, "tensor's values"));
    return;
  }
  auto n = static_cast<std::int64_t>(lua_objlen(L, -1));
  check_list(L, n);
  if (dim == static_cast<int>(shape.size()) && out.empty()) shape.push_back(n);
  if (dim >= static_cast<int>(shape.size()) || shape[static_cast<std::size_t>(dim)] != n)
    raise_invalid(L, fmt::format("tensor: the lists of dimension {} differ in length", dim + 1));
  luaL_checkstack(L, 4, "tensor");
  for (std::int64_t i = 1; i <= n; ++i) {
    lua_rawgeti(L, -1, static_cast<int>(i));
    read_nested(L, dim + 1, shape, out, booleans);
    lua_pop(L, 1);
  }
}

// Whole numbers of a type; a fraction is cut off, as a cast does.
Result<void> check_range(DType dtype, const std::vector<double>& numbers) {
  if (is_floating(dtype) || dtype == DType::boolean) return success();
  const double high = dtype == DType::u8 ? 256 : dtype == DType::i8 ? 128 : dtype == DType::i32 ? 0x1p31 : 0x1p63;
  const double low = dtype == DType::u8 ? 0 : -high;   // the first number above that does not fit is `high`
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if ((numbers[i] >= low || numbers[i] > low - 1) && numbers[i] < high) continue;
    return make_error(ErrorKind::invalid,
                      fmt::format("tensor: {} at position {} does not fit {}", numbers[i], i + 1, name_of(dtype)),
                      dtype == DType::i64 ? "floating types hold it: dtype = \"f64\""
                                          : "a larger type: dtype = \"i64\"");
  }
  return success();
}

Result<int> from_table(lua_State* L) {  // dev:tensor({{1, 2}, {3, 4}}, {dtype =}), dev:tensor(3)
  Graph& g = self(L, "tensor");
  check_options(L, 3, "tensor", {"dtype", "requires_grad"});
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
  bool booleans = true;
  lua_pushvalue(L, 2);
  read_nested(L, 0, shape, numbers, booleans);
  lua_pop(L, 1);
  RILLE_TRY(Dims dims, tensor::make_dims(shape));
  DType dtype = option_dtype(L, 3, booleans && !numbers.empty() ? DType::boolean : DType::f32);
  if (auto fits = check_range(dtype, numbers); !fits) return at_line(L, std::move(fits).error());
  const device::OwnedBy owner(tensor::owner_here(g, "data from the host"));
  auto t = tensor::from_numbers(g, dims, dtype, numbers);
  if (t && lua_istable(L, 3) && option_bool(L, 3, "requires_grad", false)) RILLE_CHECK(t->set_requires_grad(true));
  return give(L, std::move(t));
}

Result<int> from_bytes(lua_State* L) {  // dev:from_bytes(t:bytes(), {2, 3}, "f32")
  Graph& g = self(L, "from_bytes");
  const std::string_view bytes = check_text(L, 2, "from_bytes");
  RILLE_TRY(const DType dtype, parse_dtype(lua_isnoneornil(L, 4) ? "u8" : check_text(L, 4, "from_bytes' dtype")));
  Dims shape;
  if (lua_isnoneornil(L, 3)) shape.push(static_cast<std::int64_t>(bytes.size() / size_bytes(dtype)));
  else shape = check_shape(L, 3, "from_bytes");
  const auto wanted = static_cast<std::size_t>(shape.count()) * size_bytes(dtype);
  if (bytes.size() != wanted)
    raise_invalid(L, fmt::format("from_bytes: {} bytes are no {}{}, which has {} ({})", bytes.size(), name_of(dtype),
                                 tensor::to_string(shape), wanted, script_position(L)),
                  "dev:from_bytes(t:bytes(), t:shape(), t.dtype)");
  if (dtype == DType::boolean && std::any_of(bytes.begin(), bytes.end(), [](unsigned char c) { return c > 1; }))
    raise_invalid(L, fmt::format("from_bytes: a bool is 0 or 1 ({})", script_position(L)), "read them as \"u8\"");
  const device::OwnedBy owner(tensor::owner_here(g, "data from the host"));
  return give(L, tensor::from_bytes(g, shape, dtype, bytes.data(), bytes.size()));
}

int seed(lua_State* L) {
  Graph& g = self(L, "seed");
  g.manual_seed(check_seed(L, 2, "seed"));
  return 0;
}

int random_state(lua_State* L) {  // a plain table, for checkpoints
  auto s = self(L, "random_state").random_state();
  lua_newtable(L);
  set_field(L, "seed", static_cast<double>(s.seed));
  set_field(L, "step", static_cast<double>(s.step));
  set_field(L, "index", static_cast<double>(s.index));
  return 1;
}

int set_random_state(lua_State* L) {
  Graph& g = self(L, "set_random_state");
  check_table(L, 2, "set_random_state");
  auto get = [&](const char* key) { return static_cast<std::uint64_t>(option_number(L, 2, key).value_or(0)); };
  g.set_random_state({get("seed"), get("step"), static_cast<std::uint32_t>(get("index"))});
  return 0;
}

int memory(lua_State* L) {
  auto m = self(L, "memory").device()->memory();
  lua_newtable(L);
  set_field(L, "live", m.live_bytes);
  set_field(L, "peak", m.peak_bytes);
  set_field(L, "cached", m.cached_bytes);
  set_field(L, "limit", m.limit_bytes);
  set_field(L, "buffers", m.live_buffers);
  push(L, self(L, "memory").device()->memory_summary());
  lua_setfield(L, -2, "summary");
  if (const auto* cuda = dynamic_cast<const device::CudaDevice*>(self(L, "memory").device().get())) {
    const auto [free_bytes, total_bytes] = value_or_raise(L, cuda->card_memory());
    set_field(L, "card_free", static_cast<double>(free_bytes));
    set_field(L, "card_total", static_cast<double>(total_bytes));
  }
  return 1;
}

// What it does now: dev:telemetry() -> table
Result<int> telemetry(lua_State* L) {
  const auto& h = check_object<DeviceHandle>(L, 1, "telemetry");
  TensorState& state = tensor_state(L);
  if (h.card) {
    if (!state.gpus) { RILLE_TRY(state.gpus, device::GpuTelemetry::open()); }
    RILLE_TRY(const Value reading, state.gpus->read(h.card->info.uuid));
    push_value(L, reading);
    return 1;
  }
  if (!state.processor) state.processor.emplace();
  push_value(L, state.processor->read());
  return 1;
}

Result<int> limit_memory(lua_State* L) {  // dev:limit_memory("2GB"); 0: no limit
  Graph& g = self(L, "limit_memory");
  std::int64_t bytes = 0;
  if (lua_type(L, 2) == LUA_TNUMBER) {
    bytes = check_integer(L, 2, "limit_memory");
  } else {
    RILLE_TRY(bytes, parse_size_bytes(check_text(L, 2, "limit_memory")));
  }
  if (bytes < 0)
    return make_error(ErrorKind::invalid, fmt::format("limit_memory: {} bytes", bytes),
                      "a size such as \"2GB\", or 0: no limit");
  g.device()->set_memory_limit(bytes);
  return 0;
}

int release_cache(lua_State* L) {  // waits until nothing works on it
  self(L, "release_cache").device()->release_cache();
  return 0;
}

int reset_peak(lua_State* L) {
  self(L, "reset_peak").device()->reset_peak();
  return 0;
}

int synchronize(lua_State* L) {
  Graph& g = self(L, "synchronize");
  if (g.tracing()) raise(L, at_line(L, make_error(ErrorKind::state, "synchronize inside a compiled function")));
  Completion done = begin_await(L);
  g.synchronize([done](Result<void> r) {
    if (r) done.post_finish([](lua_State*) { return 0; });
    else done.post_fail(std::move(r).error());
  });
  return end_await(L);
}

// dev:profile and dev:check_numbers are Lua: stdlib/device.
void push_lua(lua_State* L, const char* module, const char* name) {
  get_registry(L, &key_rille);
  lua_getfield(L, -1, module);
  lua_getfield(L, -1, name);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

constexpr const char* card_fields[] = {"model", "uuid", "bus", "architecture", "multiprocessors", "memory_bytes"};

// nil for the CPU. false: no such field.
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

bool field(lua_State* L, std::string_view key) {
  auto& h = check_object<DeviceHandle>(L, 1, "device");
  if (key == "name") push(L, h.name);
  else if (key == "kind") push(L, h.card ? "cuda" : "cpu");
  else if (key == "description") push(L, description(L, h));
  else if (key == "threads") push(L, h.card ? 0 : opened(L, h).device()->threads());
  else if (key == "profile") push_lua(L, "device.profile", "profile");
  else if (key == "check_numbers") push_lua(L, "device.check_numbers", "check_numbers");
  else return card_field(L, key, h.card);
  return true;
}

int to_string(lua_State* L) {
  auto& h = check_object<DeviceHandle>(L, 1, "device");
  push(L, fmt::format("Device {}: {}", h.name, description(L, h)));
  return 1;
}

int device_kernel_method(lua_State* L) {
  self(L, "kernel");
  return device_kernel(L);
}

int device_kernel_file_method(lua_State* L) {
  self(L, "kernel_file");
  return device_kernel_file(L);
}

char devices_key;

// Always the same object for a device, so that == holds: in a table by the device's name.
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
  if (lua_isnoneornil(L, 1)) return push_open(L, tensor_state(L).graph);
  RILLE_TRY(const auto graph, graph_on(L, std::string(check_text(L, 1, "rille.device"))));
  return push_open(L, graph);
}

// The CUDA devices, as the driver counts them, then the CPU.
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
  define_class<DeviceHandle>(L, {.name = "Device",
                                 .methods = {{"zeros", bind<make<zeros_>>},
                                             {"ones", bind<make<ones_>>},
                                             {"rand", bind<make<rand_>>},
                                             {"randn", bind<make<randn_>>},
                                             {"full", bind<full>},
                                             {"randint", bind<randint>},
                                             {"arange", bind<arange>},
                                             {"linspace", bind<linspace>},
                                             {"eye", bind<eye>},
                                             {"rope_angles", bind<rope_angles>},
                                             {"tensor", bind<from_table>},
                                             {"from_bytes", bind<from_bytes>},
                                             {"seed", bind<seed>},
                                             {"random_state", bind<random_state>},
                                             {"set_random_state", bind<set_random_state>},
                                             {"memory", bind<memory>},
                                             {"telemetry", bind<telemetry>},
                                             {"limit_memory", bind<limit_memory>},
                                             {"release_cache", bind<release_cache>},
                                             {"reset_peak", bind<reset_peak>},
                                             {"synchronize", bind<synchronize>},
                                             {"stream", bind<device_stream>},
                                             {"record", bind<device_record>},
                                             {"wait", bind<device_wait>},
                                             {"kernel", bind<device_kernel_method>},
                                             {"kernel_file", bind<device_kernel_file_method>}},
                                 .metamethods = {{"__tostring", bind<to_string>}},
                                 .field = field,
                                 .fields = {"name", "kind", "description", "threads", "profile", "check_numbers",
                                            "model", "uuid", "bus", "architecture", "multiprocessors",
                                            "memory_bytes"}});
  get_registry(L, &host::detail::class_key<DeviceHandle>);
  lua_getfield(L, -1, "__methods");
  set_async(L, "synchronize", bind<synchronize>);
  set_async(L, "kernel", bind<device_kernel_method>);
  set_async(L, "kernel_file", bind<device_kernel_file_method>);
  lua_pop(L, 2);
  for (const Function& f : {Function{"device", bind<device>}, Function{"devices", bind<devices>}}) {
    lua_pushstring(L, f.name);
    lua_pushcfunction(L, f.function);
    lua_rawset(L, 1);
  }
}

}  // namespace rille::lua
