// Creates the graphs of a Lua state: one for the default device and one for each device requested by name.
#include <algorithm>
#include <chrono>
#include <future>

#include "bindings/lua/compute/lane_meter.hpp"
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
    g->set_look({});
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

// Returns a function that ends the host's work, and its run or call, because cpu_ms is exceeded. Any thread.
std::function<void()> end_of_processor_time(const LuaHost& host, const std::shared_ptr<lua_State*>& main, Loop& loop) {
  return [main = std::weak_ptr<lua_State*>(main), &loop, cpu_ms = host.options().limits.cpu_ms,
          weak = std::weak_ptr<Work>(host.work())] {
    const Error why = cpu_error(cpu_ms);
    auto mine = weak.lock();
    if (!mine) return;
    mine->end(why);
    // The loop's thread must drop the work, because the work owns the meter, and the meter cannot be destroyed on the
    // watchdog's thread, which calls this function.
    loop.post_from_thread([main, mine = std::move(mine), why] {
      if (const auto alive = main.lock()) LuaHost::of(*alive).work_is_over(mine.get(), why);
    });
  };
}

// Counts the processor time of the host's work, if cpu_ms limits it.
void meter(const LuaHost& host, const std::shared_ptr<lua_State*>& main, Loop& loop) {
  const std::int64_t cpu_ms = host.options().limits.cpu_ms;
  const std::shared_ptr<Work>& work = host.work();
  if (cpu_ms <= 0 || work->meter()) return;
  work->set_meter(std::make_shared<LaneMeter>(cpu_ms, host.options().spent, end_of_processor_time(host, main, loop)));
}

Result<std::shared_ptr<Graph>> make_graph(TensorState& state, std::shared_ptr<device::Device> device) {
  RILLE_TRY(auto made, Graph::create(std::move(device)));
  made->set_where([s = &state] { return s->L ? script_position(s->L) : std::string("?"); });
  LuaHost& host = LuaHost::of(*state.main);
  made->set_look([&host] { host.look(); });
  state.graphs.push_back(made);
  state.follow_work();
  return made;
}

}  // namespace

void TensorState::follow_work() {
  LuaHost& host = LuaHost::of(*main);
  meter(host, main, host.loop());
  for (const auto& g : graphs) g->set_work(host.work());
}

namespace {

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
  if (name == "cpu") {
    std::shared_ptr<device::Device> cpu = device::CpuDevice::create(device::Lane::shared());
    if (const auto& memory = LuaHost::of(L).options().memory) {
      cpu->count_in(memory);
      LuaHost::of(L).state().relieve = [weak = std::weak_ptr<device::Device>(cpu)] {
        const auto device = weak.lock();
        if (!device || device->memory().cached_bytes == 0) return false;
        device->release_cache();
        return true;
      };
    }
    return cpu;
  }
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
    if (const auto& memory = LuaHost::of(L).options().memory; memory && memory->limit_bytes())
      fresh.collect_after_bytes = std::min(fresh.collect_after_bytes, std::size_t(memory->limit_bytes()) / 4);
    state = &push_object(L, std::move(fresh));
    state->graph = value_or_raise(L, make_graph(*state, std::move(device)));
    set_registry(L, &tensor_state_key);
    LuaHost::of(L).on_work([state] { state->follow_work(); });
  }
  state->L = L;
  return *state;
}

namespace {

template <class T>
Result<T> wait_here(lua_State* L, std::future<Result<T>> arrives) {
  constexpr std::chrono::milliseconds between_looks(5);
  while (arrives.wait_for(between_looks) != std::future_status::ready) LuaHost::of(L).check(L);
  return arrives.get();
}

}  // namespace

Result<void> synchronize_here(lua_State* L, Graph& g) {
  const auto promise = std::make_shared<std::promise<Result<void>>>();
  g.synchronize([promise](Result<void> r) { promise->set_value(std::move(r)); });
  return wait_here(L, promise->get_future());
}

Result<HostData> read_here(lua_State* L, const Tensor& t) {
  const auto promise = std::make_shared<std::promise<Result<HostData>>>();
  t.graph().read(t, [promise](Result<HostData> r) { promise->set_value(std::move(r)); });
  return wait_here(L, promise->get_future());
}

std::function<void(std::int64_t ns)> processor_time_counter(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  const std::int64_t limit_ns = host.options().limits.cpu_ms * 1'000'000;
  if (limit_ns <= 0) return {};
  return [spent = host.options().spent, limit_ns,
          over = end_of_processor_time(host, tensor_state(L).main, host.loop())](std::int64_t ns) {
    const std::int64_t before = spent->lane_ns.fetch_add(ns);
    if (before <= limit_ns && before + ns > limit_ns) over();
  };
}

std::shared_ptr<Graph> default_graph(lua_State* L) {
  const TensorState& state = tensor_state(L);
  if (state.no_default) raise(L, at_line(L, *state.no_default));
  return state.graph;
}

Graph& graph(lua_State* L) { return *default_graph(L); }

}  // namespace rille::lua
