// libcuda.so.1 for tests: the functions of device/cuda/driver.hpp, with device memory in this process and kernels run
// through the shim (tests/support/shim_kernels.hpp).
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "../shim_kernels.hpp"
#include "world.hpp"

// clang-format off
namespace rille::test::standin {

using namespace device::cuda;

namespace {

thread_local std::vector<int> contexts;              // GPUs, the current one last

constexpr unsigned multiprocessors = 2;              // of an sm_90

struct Module {
  void* library = nullptr;
  std::string kernel;                                // its lowered name
  std::vector<std::uintptr_t> variables;             // device memory while it is loaded
  std::shared_ptr<int> pending = std::make_shared<int>(0);   // launches that have not run
};
struct Callable {
  std::string name;
  const rille_abi::Kernel* kernel;
  std::shared_ptr<int> pending;
  unsigned own_shared = 0, dynamic_shared = 48u << 10;   // of a block; dynamic: the present maximum
};
constexpr unsigned shared_most = 227u << 10;

// RILLE_STANDIN_SHARED: bytes of the __shared__ arrays of user kernels.
unsigned shared_of_users() {
  const char* const bytes = std::getenv("RILLE_STANDIN_SHARED");
  return bytes ? unsigned(std::atoi(bytes)) : 0;
}

// RILLE_STANDIN_THREADS: the most threads per block of a kernel, as its registers would allow.
int threads_of_users() {
  const char* const most = std::getenv("RILLE_STANDIN_THREADS");
  return most ? std::atoi(most) : 1024;
}

Stream& of(CUstream s) { return *reinterpret_cast<Stream*>(s); }
Event& of(CUevent e) { return *reinterpret_cast<Event*>(e); }
int card_of(CUcontext c) { return int(reinterpret_cast<std::uintptr_t>(c)) - 1; }
char* at(CUdeviceptr p) { return reinterpret_cast<char*>(p); }

// The beginning of every function: the lock, a lost GPU, a failure requested by the test, the context.
struct Entered {
  std::lock_guard<std::recursive_mutex> lock{world().mutex};
  CUresult result = cu::success;
  bool lost = false;
  explicit Entered(const char* name, bool wants_context = true) {
    World& w = world();
    const Options& o = w.options;
    const int card = contexts.empty() ? -1 : contexts.back();
    std::string key = name;
    if (o.fail_function && std::strchr(o.fail_function, '@')) key += "@" + std::to_string(card);
    const int number = ++w.calls[key];
    if (o.fail_function && (o.fail_at == number || o.fail_at < 0) && key == o.fail_function) {
      result = o.fail_code;
      ++w.report.failures;
      if (is_loss(result)) w.losses.emplace(card, result);
    }
    lost = wants_context && w.lost(card) != cu::success;
    if (result == cu::success && lost) result = w.lost(card);
    if (result == cu::success && wants_context && contexts.empty()) {
      w.wrong(std::string(name) + " without a context");
      result = 201;
    }
  }
};
#define ENTER(...)                       \
  const Entered entered(__func__ __VA_OPT__(,) __VA_ARGS__); \
  if (entered.result != cu::success) return entered.result; \
  [[maybe_unused]] World& w = world()

// A copy that runs later: checks that its operands are still memory by then.
void move(char* to, const char* from, std::size_t bytes, bool to_device, bool from_device) {
  World& w = world();
  if ((to_device && !w.inside(std::uintptr_t(to), bytes)) || (from_device && !w.inside(std::uintptr_t(from), bytes))) {
    w.wrong("a copy of " + std::to_string(bytes) + " bytes outside of live memory");
    w.losses.emplace(w.running, cu::illegal_address);
    return;
  }
  std::memmove(to, from, bytes);
}

// Queues a task on the stream; the watcher is notified now and when it has run.
CUresult add(CUstream s, Activity what, std::function<void()> run) {
  World& w = world();
  const auto watcher = w.watcher.load();
  what.correlation = ++w.correlations;
  what.device = std::uint32_t(of(s).card);
  if (contexts.empty() || of(s).card != contexts.back()) w.wrong("a stream is used in another card's context");
  if (!watcher || of(s).capturing) return w.add(of(s), std::move(run));
  watcher(false, what);
  return w.add(of(s), [what, run = std::move(run)]() mutable {
    World& later = world();
    run();
    what.start = std::uint64_t(later.ran) * 1000;
    what.end = what.start + 500;
    if (const auto still = later.watcher.load()) still(true, what);
  });
}

// The capturing thread may not call this; other threads may.
bool captures() {
  for (auto* s : world().streams)
    if (s->capturing && s->by == std::this_thread::get_id()) return s->broken = true;
  return false;
}

// A copy, since the loader would return the same library twice, with the same variables.
void* load_copy(const std::string& path) {
  static int count = 0;
  const std::string copy = path + "-standin-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  std::error_code failed;
  std::filesystem::copy_file(path, copy, failed);
  void* const library = failed ? nullptr : ::dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(copy, failed);
  return library;
}

const rille_abi::Kernel* kernel_of(const Module& module) {
  return module.library ? static_cast<const rille_abi::Kernel*>(::dlsym(module.library, "rille_kernel")) : nullptr;
}

bool is_possible(const unsigned (&grid)[3], const unsigned (&block)[3]) {
  for (int i = 0; i < 3; ++i) if (!grid[i] || !block[i]) return false;
  return grid[1] <= 65535 && grid[2] <= 65535 && block[0] * block[1] * block[2] <= 1024;
}

// Whether all blocks fit on the multiprocessors at once.
bool is_resident(const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared) {
  const unsigned warps = (block[0] * block[1] * block[2] + 31) / 32, by_shared = (228u << 10) / (shared + 1024);
  return std::uint64_t(grid[0]) * grid[1] * grid[2] <= multiprocessors * std::min({32u, 64 / warps, by_shared});
}

CUresult launch(CUfunction f, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared, CUstream stream,
                void** arguments, bool cooperative) {
  const auto& callable = *reinterpret_cast<Callable*>(f);
  if (shared > callable.dynamic_shared) return cu::invalid_value;
  ++world().report.launches;
  // Copies the present values: later changes have no effect.
  std::vector<std::vector<std::max_align_t>> values;
  for (unsigned i = 0; i < callable.kernel->parameters; ++i) {
    const auto& p = callable.kernel->parameter[i];
    const std::size_t bytes = p.pointer ? sizeof(void*) : p.size;
    values.emplace_back((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t) + 4);
    std::memcpy(values.back().data(), arguments[i], bytes);
  }
  device::KernelRun run;
  run.kernel = callable.kernel;
  std::copy(grid, grid + 3, run.grid);
  std::copy(block, block + 3, run.block);
  run.shared_bytes = shared;
  run.cooperative = cooperative;
  const bool captured = of(stream).capturing;        // done by the graph
  *callable.pending += !captured;
  return add(stream, {.kind = 10, .name = callable.name.c_str()},
             [run, values, name = callable.name, pending = callable.pending, captured]() mutable {
    *pending -= !captured;
    std::vector<void*> list;
    for (auto& v : values) list.push_back(v.data());
    run.arguments = list.data();
    static auto* const pool = new device::RunnerPool;
    device::RunReport report;
    device::run_kernel(run, *pool, report);
    if (report.violation.kind != device::Violation::Kind::none || report.out_of_memory) {
      world().wrong("kernel " + name + " failed");
      world().losses.emplace(world().running, cu::launch_failed);
    }
  });
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) CUresult

__attribute__((visibility("default"))) void standin_reset(const Options* o) { world().reset(*o); }
// Work of a library on a stream (cublaslt.cpp).
API standin_call(CUstream s, const std::function<void()>* run) {
  const std::lock_guard lock(world().mutex);
  ++world().report.library_calls;
  return add(s, {.kind = 10, .name = "a_library_kernel"}, *run);
}
API standin_gate(CUstream s, const std::function<bool()>* holds) {
  const std::lock_guard lock(world().mutex);
  if (of(s).capturing) return cu::capture_unsupported;
  of(s).tasks.push_back({nullptr, nullptr, false, *holds});
  return cu::success;
}
__attribute__((visibility("default"))) void standin_watch(Watcher watcher) { world().watcher = watcher; }
__attribute__((visibility("default"))) void standin_report(Report* r) {
  const std::lock_guard lock(world().mutex);
  *r = world().report;
}

API cuInit(unsigned) { ENTER(false); return w.options.cards ? cu::success : cu::no_device; }
API cuDriverGetVersion(int* v) { *v = world().options.version; return cu::success; }
API cuGetErrorName(CUresult r, const char** name) {
  switch (r) {
    case cu::out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case cu::illegal_address: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case cu::ecc_uncorrectable: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case cu::launch_failed: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    case cu::cooperative_too_large: *name = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"; break;
    case cu::unsupported_ptx: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; break;
    case cu::no_binary_for_gpu: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case cu::driver_mismatch: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; break;
    default: *name = "CUDA_ERROR_OF_THE_STAND_IN";
  }
  return cu::success;
}
API cuGetErrorString(CUresult, const char** text) { *text = "as the test asked"; return cu::success; }

API cuDeviceGetCount(int* n) { ENTER(false); *n = w.options.cards; return cu::success; }
API cuDeviceGet(CUdevice* d, int i) {
  ENTER(false);
  *d = i;
  return i >= 0 && i < w.options.cards ? cu::success : cu::invalid_device;
}
API cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, std::size_t(bytes), "%s", world().options.model);
  return cu::success;
}
API cuDeviceGetUuid_v2(CUuuid* id, CUdevice d) {
  for (int i = 0; i < 16; ++i) id->bytes[i] = char(16 * d + i);
  return cu::success;
}
API cuDeviceGetPCIBusId(char* bus, int bytes, CUdevice d) {
  std::snprintf(bus, std::size_t(bytes), "0000:0%d:00.0", d);
  return cu::success;
}
API cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) { *bytes = world().options.memory_bytes; return cu::success; }
API cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  *value = attribute == cu::capability_major ? 9 : attribute == cu::capability_minor ? 0
           : attribute == cu::multiprocessors ? int(multiprocessors)
           : attribute == cu::shared_per_block_optin ? int(shared_most)
           : attribute == cu::l2_cache ? 50 << 20 : 0;
  return cu::success;
}
API cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) {
  ENTER(false);
  ++w.report.contexts;
  *c = reinterpret_cast<CUcontext>(std::uintptr_t(d + 1));
  return cu::success;
}
API cuDevicePrimaryCtxRelease_v2(CUdevice) {
  const Entered entered(__func__, false);
  --world().report.contexts;
  return cu::success;
}
API cuCtxPushCurrent_v2(CUcontext c) { contexts.push_back(card_of(c)); return cu::success; }
API cuCtxPopCurrent_v2(CUcontext*) { contexts.pop_back(); return cu::success; }
API cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { *can = world().options.peers; return cu::success; }
API cuCtxEnablePeerAccess(CUcontext, unsigned flags) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  if (flags || !w.options.peers) return cu::invalid_value;
  ++w.report.peers_enabled;
  return cu::success;
}

API cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  ENTER();
  *total = w.options.memory_bytes;
  *free = *total - std::size_t(w.report.live_bytes);
  return cu::success;
}
API cuMemAlloc_v2(CUdeviceptr* p, std::size_t bytes) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  *p = reinterpret_cast<CUdeviceptr>(w.allocate(bytes, contexts.back()));
  return *p ? cu::success : cu::out_of_memory;
}
API cuMemFree_v2(CUdeviceptr p) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  return w.free(std::uintptr_t(p)) ? cu::success : cu::invalid_value;
}
API cuMemHostAlloc(void** p, std::size_t bytes, unsigned) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  Range range{std::make_unique<char[]>(bytes), bytes, false};
  *p = range.bytes.get();
  w.pinned[std::uintptr_t(*p)] = std::move(range);
  w.report.pinned_bytes += std::int64_t(bytes);
  return cu::success;
}
API cuMemFreeHost(void* p) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  const auto found = w.pinned.find(std::uintptr_t(p));
  if (found == w.pinned.end()) return cu::invalid_value;
  w.report.pinned_bytes -= std::int64_t(found->second.size);
  w.pinned.erase(found);
  return cu::success;
}

// Pinned memory is read when the copy runs; other memory at once, as the driver does.
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream s) {
  ENTER();
  ++w.report.uploads;
  const Activity in{.kind = 1, .how = 1, .bytes = bytes};
  if (w.is_pinned(from, bytes))
    return add(s, in, [=] { move(at(to), static_cast<const char*>(from), bytes, true, false); });
  const auto* const first = static_cast<const char*>(from);
  auto copy = std::make_shared<std::vector<char>>(first, first + bytes);
  return add(s, in, [=] { move(at(to), copy->data(), bytes, true, false); });
}
API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  ENTER();
  return add(s, {.kind = 1, .how = 2, .bytes = bytes},
             [=] { move(static_cast<char*>(to), at(from), bytes, false, true); });
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  ENTER();
  if (w.card_of(to) != of(s).card || w.card_of(from) != of(s).card) w.wrong("a copy within a card leaves it");
  return add(s, {.kind = 1, .how = 8, .bytes = bytes}, [=] { move(at(to), at(from), bytes, true, true); });
}
API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, std::size_t bytes,
                      CUstream s) {
  ENTER();
  ++w.report.peer_copies;
  if (w.card_of(to) != card_of(there) || w.card_of(from) != card_of(here)) w.wrong("a peer copy names the wrong card");
  return add(s, {.kind = 1, .how = 10, .bytes = bytes}, [=] { move(at(to), at(from), bytes, true, true); });
}
API cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t n, CUstream s) {
  ENTER();
  if (!w.inside(to, n)) return cu::invalid_value;
  return add(s, {.kind = 2, .bytes = n}, [=] { std::memset(at(to), byte, n); });
}
API cuMemsetD32Async(CUdeviceptr to, unsigned word, std::size_t n, CUstream s) {
  ENTER();
  ++w.report.numbers;
  if (!w.inside(to, 4 * n) || to % 4) return cu::invalid_value;
  if (w.options.no_numbers) return cu::success;
  return add(s, {.kind = 2, .bytes = 4 * n}, [=] {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(at(to) + 4 * i, &word, 4);
  });
}

API cuStreamCreate(CUstream* s, unsigned) {
  ENTER();
  static constexpr unsigned weights[] = {1, 8, 64};
  auto* const made = new Stream;
  made->number = w.streams_made++;
  made->card = contexts.back();
  made->weight = weights[w.random() % 3];
  w.streams.push_back(made);
  ++w.report.streams;
  *s = reinterpret_cast<CUstream>(made);
  return cu::success;
}
API cuStreamDestroy_v2(CUstream s) {
  ENTER();
  w.run_until([&] { return of(s).tasks.empty(); });
  std::erase(w.streams, &of(s));
  delete &of(s);
  --w.report.streams;
  return cu::success;
}
API cuStreamSynchronize(CUstream s) {
  ENTER();
  if (of(s).capturing || captures()) return cu::capture_unsupported;
  if (w.options.no_stream_syncs) return cu::success;
  if (!w.run_until([&] { return of(s).tasks.empty(); })) return cu::launch_timeout;
  return w.lost(of(s).card);
}
API cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  ENTER();
  if (of(s).capturing) return cu::capture_unsupported;
  const bool ignored = of(s).number < 32 && (w.options.no_event_waits >> of(s).number & 1);
  if (of(e).mark && !ignored)
    of(s).tasks.push_back({nullptr, of(e).mark, false, {}});
  return cu::success;
}
API cuStreamBeginCapture_v2(CUstream s, int) {
  ENTER();
  of(s).capturing = true;
  of(s).broken = false;
  of(s).by = std::this_thread::get_id();
  of(s).captured.clear();
  return cu::success;
}
API cuStreamEndCapture(CUstream s, CUgraph* g) {
  ENTER();
  if (!of(s).capturing) return cu::capture_unsupported;
  of(s).capturing = false;
  if (of(s).broken) return cu::capture_invalidated;
  *g = reinterpret_cast<CUgraph>(new Graph{std::move(of(s).captured)});
  of(s).captured.clear();
  return cu::success;
}
API cuGraphInstantiateWithFlags(CUgraphExec* e, CUgraph g, unsigned long long) {
  ENTER();
  ++w.report.graphs;
  *e = reinterpret_cast<CUgraphExec>(new std::shared_ptr<Graph>(new Graph(*reinterpret_cast<Graph*>(g))));
  return cu::success;
}
API cuGraphDestroy(CUgraph g) { delete reinterpret_cast<Graph*>(g); ENTER(); return cu::success; }  // also if lost
API cuGraphLaunch(CUgraphExec e, CUstream s) {
  ENTER();
  ++w.report.graph_launches;
  return w.add(of(s), [graph = *reinterpret_cast<std::shared_ptr<Graph>*>(e)] {
    for (auto call : graph->calls) {              // a copy each time, since a call must not affect the next one
      world().spoil_freed();
      call();
    }
  });
}
// A lost device's memory is freed with the process. Here it is freed at once, so that any leak is the plug-in's.
API cuGraphExecDestroy(CUgraphExec e) {
  const Entered entered(__func__);
  if (entered.result == cu::success || entered.lost) delete reinterpret_cast<std::shared_ptr<Graph>*>(e);
  if (entered.result == cu::success) --world().report.graphs;
  return entered.result;
}

API cuEventCreate(CUevent* e, unsigned) {
  ENTER();
  auto* const made = new Event;
  made->card = contexts.back();
  w.events.insert(made);
  ++w.report.events;
  *e = reinterpret_cast<CUevent>(made);
  return cu::success;
}
API cuEventDestroy_v2(CUevent e) {
  ENTER();
  w.events.erase(&of(e));
  delete &of(e);
  --w.report.events;
  return cu::success;
}
API cuEventRecord(CUevent e, CUstream s) {
  ENTER();
  if (of(s).capturing) return cu::capture_unsupported;
  if (of(s).card != of(e).card) w.wrong("an event is recorded on another card's stream");
  auto mark = of(e).mark = std::make_shared<Mark>();
  return w.add(of(s), [mark] {
    mark->done = true;
    mark->at = world().ran;
  }, true);
}
// Time advances with each query.
API cuEventQuery(CUevent e) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  if (w.options.early_queries || !of(e).mark) return cu::success;
  const auto mark = of(e).mark;
  if (!mark->done) w.step();
  const CUresult lost = w.lost(of(e).card);
  return lost != cu::success ? lost : mark->done ? cu::success : cu::not_ready;
}
API cuEventSynchronize(CUevent e) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  if (w.options.no_event_syncs || !of(e).mark) return cu::success;
  const auto mark = of(e).mark;
  const int card = of(e).card;
  if (!w.run_until([&] { return mark->done || w.lost(card) != cu::success; })) return cu::launch_timeout;
  return w.lost(card);
}
API cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  ENTER();
  *ms = float(of(to).mark->at - of(from).mark->at) * 1e-3f;
  return cu::success;
}

// A file made by nvrtc.cpp: a user kernel, compiled for the CPU. Otherwise the build's own kernels.
API cuModuleLoadData(CUmodule* m, const void* image) {
  ENTER();
  if (captures()) return cu::capture_unsupported;
  auto made = std::make_unique<Module>();
  const char* const text = static_cast<const char*>(image);
  if (std::strncmp(text, "\x7f" "ELFstandin:", 12) == 0) {
    const std::string named = text + 12;
    const auto end = named.find('\n');
    if (end == named.npos) return cu::invalid_image;
    made->kernel = named.substr(0, end);
    made->library = load_copy(named.substr(end + 1));
    if (!kernel_of(*made)) return cu::invalid_image;
  }
  ++w.report.modules;
  *m = reinterpret_cast<CUmodule>(made.release());
  return cu::success;
}
API cuModuleUnload(CUmodule m) {
  const Entered entered(__func__);
  auto* const module = reinterpret_cast<Module*>(m);
  const bool early = entered.result == cu::success && *module->pending;
  if (early) world().wrong("a module is unloaded before its kernels have run");
  for (const auto variable : module->variables) world().memory.erase(variable);
  if (module->library && entered.result == cu::success && !early) ::dlclose(module->library);
  if (entered.result == cu::success || entered.lost) delete module;
  if (entered.result == cu::success) --world().report.modules;
  return entered.result;
}
API cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
  ENTER();
  const auto& module = *reinterpret_cast<Module*>(m);
  const auto* kernel = !module.library ? shim_kernel(name) : name == module.kernel ? kernel_of(module) : nullptr;
  if (!kernel) return cu::not_found;
  static std::map<std::string, Callable>* const callables = new std::map<std::string, Callable>;
  auto& callable = (*callables)[std::string(name) + "@" + std::to_string(std::uintptr_t(kernel)) + "@" +
                                std::to_string(std::uintptr_t(m))];
  const unsigned own = module.library ? shared_of_users() : 0;
  callable = {name, kernel, module.pending, own, (48u << 10) - own};
  *f = reinterpret_cast<CUfunction>(&callable);
  return cu::success;
}
API cuModuleGetGlobal_v2(CUdeviceptr* p, std::size_t* bytes, CUmodule m, const char* name) {
  ENTER();
  auto& module = *reinterpret_cast<Module*>(m);
  const auto* kernel = kernel_of(module);
  for (unsigned i = 0; kernel && i < kernel->symbols; ++i) {
    const auto& variable = kernel->symbol[i];
    if (std::strcmp(variable.name, name) != 0) continue;
    const auto place = reinterpret_cast<std::uintptr_t>(variable.at);
    w.memory[place] = Range{nullptr, variable.bytes, false, contexts.back()};
    module.variables.push_back(place);
    *p = place;
    *bytes = variable.bytes;
    return cu::success;
  }
  return cu::not_found;
}
API cuFuncGetAttribute(int* value, int attribute, CUfunction f) {
  ENTER();
  if (attribute == cu::threads_max) return *value = threads_of_users(), cu::success;
  if (attribute != cu::static_shared) return cu::invalid_value;
  *value = int(reinterpret_cast<const Callable*>(f)->own_shared);
  return cu::success;
}
API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction f, std::size_t (*)(int), std::size_t, int) {
  ENTER();
  if (!f) return cu::invalid_value;
  return *grid = 2, *block = std::min(threads_of_users(), 768), cu::success;
}
API cuFuncSetAttribute(CUfunction f, int attribute, int value) {
  ENTER();
  auto& callable = *reinterpret_cast<Callable*>(f);
  if (attribute != cu::dynamic_shared_max || value < 0 || callable.own_shared + unsigned(value) > shared_most)
    return cu::invalid_value;
  callable.dynamic_shared = unsigned(value);
  return cu::success;
}
API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CUstream s, void** arguments, void**) {
  ENTER();
  if (!is_possible({gx, gy, gz}, {bx, by, bz})) {
    w.wrong("a launch of a grid that no GPU takes");
    return cu::invalid_value;
  }
  return launch(f, {gx, gy, gz}, {bx, by, bz}, shared, s, arguments, false);
}
API cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream s, void** arguments) {
  ENTER();
  if (!is_possible({gx, gy, gz}, {bx, by, bz})) {
    w.wrong("a launch of a grid that no GPU takes");
    return cu::invalid_value;
  }
  if (!is_resident({gx, gy, gz}, {bx, by, bz}, shared)) return cu::cooperative_too_large;
  return launch(f, {gx, gy, gz}, {bx, by, bz}, shared, s, arguments, true);
}

}  // extern "C"

}  // namespace rille::test::standin
