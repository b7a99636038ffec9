// The plug-in's entry and its table.
#include "runtime/compute/device/cuda/plugin.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/compute/device/cuda/nccl.hpp"
#include "runtime/compute/device/cuda/own_kernels.hpp"
#include "runtime/compute/device/cuda/trace.hpp"
#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {

struct Process {
  std::mutex mutex;
  Driver driver;
  bool started = false;
};

// The driver's state; one per process.
Process& process() {
  static Process p;
  return p;
}

bool start(DriverInfo* info, Failure* f) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.started) {
    Driver driver;
    if (!driver.load(*f)) return false;
    set_cuda_driver(driver.version);
    if (!knows_kernels(driver, *f)) return false;
    p.driver = driver;
    p.started = true;
  }
  info->version = p.driver.version;
  std::snprintf(info->path, sizeof info->path, "%s", p.driver.path);
  return p.driver.ok(p.driver.cuDeviceGetCount(&info->cards), "counting devices", *f);
}

bool started(Failure* f) {
  DriverInfo ignored;
  return start(&ignored, f);
}

void write_uuid(const CUuuid& id, const char* prefix, char (&text)[48]) {
  int n = std::snprintf(text, sizeof text, "%s-", prefix);
  for (int i = 0; i < 16; ++i) {
    const unsigned byte = static_cast<unsigned char>(id.bytes[i]);
    const bool dash = i == 3 || i == 5 || i == 7 || i == 9;
    n += std::snprintf(text + n, sizeof text - std::size_t(n), "%02x%s", byte, dash ? "-" : "");
  }
}

bool describe_card(int ordinal, CardInfo* info, Failure* f) {
  if (!started(f)) return false;
  const Driver& d = process().driver;
  CUdevice device = 0;
  CUuuid id{};
  std::size_t bytes = 0;
  int major = 0, minor = 0;
  if (!d.ok(d.cuDeviceGet(&device, ordinal), "describing a device", *f) ||
      !d.ok(d.cuDeviceGetName(info->name, sizeof info->name, device), "describing a device", *f) ||
      !d.ok(d.cuDeviceGetUuid(&id, device), "describing a device", *f) ||
      !d.ok(d.cuDeviceTotalMem(&bytes, device), "describing a device", *f))
    return false;
  d.cuDeviceGetPCIBusId(info->bus, sizeof info->bus, device);
  d.cuDeviceGetAttribute(&major, cu::capability_major, device);
  d.cuDeviceGetAttribute(&minor, cu::capability_minor, device);
  d.cuDeviceGetAttribute(&info->multiprocessors, cu::multiprocessors, device);
  d.cuDeviceGetAttribute(&info->l2_bytes, cu::l2_cache, device);
  d.cuDeviceGetAttribute(&info->shared_bytes_max, cu::shared_per_block_optin, device);
  info->architecture = major * 10 + minor;
  info->memory_bytes = std::int64_t(bytes);
  write_uuid(id, std::strstr(info->name, " MIG ") ? "MIG" : "GPU", info->uuid);
  return true;
}

Card* open_card(int ordinal, Failure* f) {
  if (!started(f)) return nullptr;
  auto* const card = new Card(process().driver);
  if (card->open(ordinal, *f)) return card;
  card->close();
  delete card;
  return nullptr;
}

void close_card(Card* card) {
  card->close();
  delete card;
}

bool alive(Card* card, Failure* f) { return card->alive(*f); }

void* allocate(Card* card, std::size_t bytes) {
  const Current current(*card);
  Failure ignored;
  CUdeviceptr at = 0;
  return card->ok(card->driver.cuMemAlloc(&at, bytes), "memory", ignored) ? reinterpret_cast<void*>(at) : nullptr;
}

void release(Card* card, void* data) {
  const Current current(*card);
  card->driver.cuMemFree(address(data));
}

void settle(Card* card) {
  const Current current(*card);
  Failure ignored;
  card->settle(ignored);
}

bool memory(Card* card, std::int64_t* free_bytes, std::int64_t* total_bytes) {
  const Current current(*card);
  std::size_t free = 0, total = 0;
  if (card->driver.cuMemGetInfo(&free, &total) != cu::success) return false;
  *free_bytes = std::int64_t(free);
  *total_bytes = std::int64_t(total);
  return true;
}

std::int64_t working_bytes(Card* card) { return card->block_bytes; }
std::uint64_t stamp(Card* card) { return card->stamp(); }

bool upload(Card* card, void* to, const void* from, std::size_t bytes, std::uint64_t after, Failure* f) {
  const Current current(*card);
  return card->upload(to, from, bytes, after, *f);
}

bool download(Card* card, void* to, const void* from, std::size_t bytes, Failure* f) {
  const Current current(*card);
  return card->download(to, from, bytes, *f);
}

bool finish(Card* card, Failure* f) {
  const Current current(*card);
  return card->finish(*f);
}

bool clear(Card* card, void* at, std::size_t bytes, Failure* f) {
  const Current current(*card);
  return card->alive(*f) && (bytes == 0 || card->ok(card->driver.cuMemsetD8Async(address(at), 0, bytes, card->stream()),
                                                    "clearing memory", *f));
}

bool copy(Card* card, void* to, const void* from, std::size_t bytes, Failure* f) {
  const Current current(*card);
  return card->alive(*f) &&
         (bytes == 0 || card->ok(card->driver.cuMemcpyDtoDAsync(address(to), address(from), bytes, card->stream()),
                                 "copying memory", *f));
}

bool pace(Card* card, Failure* f) {
  const Current current(*card);
  return card->mark(*f);
}

bool wants_kernels(Card* card) { return !card->fits_images && card->given.empty(); }

bool give_kernels(Card* card, const void* image, Failure* f) {
  const Current current(*card);
  return card->give(image, *f);
}

bool knows(kernels::OpId op) { return kernels::cuda::launch_of(op) != nullptr; }

bool run(Card* card, kernels::OpId op, const kernels::Call* call, Failure* f) {
  const Current current(*card);
  return card->run(op, *call, *f);
}

bool begin_capture(Card* card, Failure* f) {
  const Current current(*card);
  return card->begin_capture(*f);
}

Sequence* end_capture(Card* card, Failure* f) {
  const Current current(*card);
  return card->end_capture(*f);
}

bool replay(Card* card, Sequence* sequence, std::uint64_t seed, std::uint64_t step, Failure* f) {
  const Current current(*card);
  return card->replay(*sequence, seed, step, *f);
}

void drop(Card* card, Sequence* sequence) {
  const Current current(*card);
  card->drop(sequence);
}

bool start_clock(Card* card, Failure* f) {
  const Current current(*card);
  for (auto& e : card->clock) {
    if (!e && !card->ok(card->driver.cuEventCreate(&e, cu::event_blocking), "making an event", *f)) return false;
  }
  return card->ok(card->driver.cuEventRecord(card->clock[0], card->compute), "recording an event", *f);
}

bool stop_clock(Card* card, std::int64_t* ns, Failure* f) {
  const Current current(*card);
  float ms = 0;
  if (!card->ok(card->driver.cuEventRecord(card->clock[1], card->compute), "recording an event", *f) ||
      !card->ok(card->driver.cuEventSynchronize(card->clock[1]), "waiting for the device", *f) ||
      !card->ok(card->driver.cuEventElapsedTime(&ms, card->clock[0], card->clock[1]), "timing", *f))
    return false;
  *ns = std::int64_t(double(ms) * 1e6);
  return true;
}

bool send(Card* card, Card* other, void* to, const void* from, std::size_t bytes, std::uint64_t after, Failure* f) {
  const Current current(*card);
  return card->send(*other, to, from, bytes, after, *f);
}

bool trace_start(Card* card, Failure* f) {
  const Current current(*card);
  return card->alive(*f) && start_trace(*card, *f);
}

void trace_mark(Card*, std::uint64_t call) { trace_call(call); }

bool trace_stop(Card* card, void (*each)(void*, const TraceRecord*), void* to, Failure* f) {
  const Current current(*card);
  return stop_trace(*card, each, to, *f);
}

void fallbacks(Card* card, void (*each)(void*, const Fallback*), void* to) { card->fallbacks(each, to); }

// -- users' kernels
Function* load(Card* card, const void* image, const char* name, Failure* f) {
  const Current current(*card);
  CUmodule module = nullptr;
  if (!card->alive(*f)) return nullptr;
  if (!card->ok(card->driver.cuModuleLoadData(&module, image), "loading a kernel", *f)) return nullptr;
  auto* const function = new Function{module, {}, 0};
  if (card->ok(card->driver.cuModuleGetFunction(&function->kernel.function, module, name), name, *f)) return function;
  card->driver.cuModuleUnload(module);
  delete function;
  return nullptr;
}

void unload(Card* card, Function* function) {
  const Current current(*card);
  Failure ignored;
  card->settle(ignored);
  card->driver.cuModuleUnload(function->module);
  delete function;
}

// Waits for the copy: the kernel may run on any stream, and only the card's default stream waits for uploads.
bool set_constant(Card* card, Function* function, const char* name, const void* bytes, std::size_t count, Failure* f) {
  CUdeviceptr at = 0;
  std::size_t room = 0;
  const Current current(*card);
  if (!card->ok(card->driver.cuModuleGetGlobal(&at, &room, function->module, name), name, *f)) return false;
  if (count != room)
    return refuse(*f, int(ErrorKind::invalid),
                  "give as many numbers as the __constant__ variable of the kernel has elements",
                  "the constant %s has %zu bytes, but %zu are given", name, room, count);
  return card->upload(reinterpret_cast<void*>(at), bytes, count, 0, *f) &&
         card->ok(card->driver.cuStreamSynchronize(card->copies), name, *f);
}

// Checks the number of threads per block: for too many the driver would only report an invalid launch.
bool allow_block(Card* card, Function* function, const unsigned* block, Failure* f) {
  if (function->threads_most == 0 &&
      !card->ok(card->driver.cuFuncGetAttribute(&function->threads_most, cu::threads_max, function->kernel.function),
                "threads of a block", *f))
    return false;
  const unsigned asked = block[0] * block[1] * block[2];
  if (asked <= unsigned(function->threads_most)) return true;
  return refuse(
      *f, int(ErrorKind::invalid),
      "use fewer threads: kernel:suggest_block() names a good number; registers and __launch_bounds__ set the limit",
      "cuda:%d: a block of %u threads: this kernel takes at most %d", card->ordinal, asked, function->threads_most);
}

bool suggest_block(Card* card, Function* function, int* threads, Failure* f) {
  const Current current(*card);
  int grid = 0;
  const CUfunction k = function->kernel.function;
  return card->alive(*f) && card->ok(card->driver.cuOccupancyMaxPotentialBlockSize(&grid, threads, k, nullptr, 0, 0),
                                     "a good size of a block", *f);
}

bool launch(Card* card, Function* function, const Shape* s, void** arguments, Failure* f) {
  const Current current(*card);
  const Driver& d = card->driver;
  const auto* g = s->grid;
  const auto* b = s->block;
  if (!card->alive(*f) || !card->allow_shared(function->kernel, s->shared_bytes, *f) ||
      !allow_block(card, function, b, f))
    return false;
  const CUfunction k = function->kernel.function;
  const CUstream stream = card->stream(s->stream);
  return card->ok(
      s->cooperative
          ? d.cuLaunchCooperativeKernel(k, g[0], g[1], g[2], b[0], b[1], b[2], s->shared_bytes, stream, arguments)
          : d.cuLaunchKernel(k, g[0], g[1], g[2], b[0], b[1], b[2], s->shared_bytes, stream, arguments, nullptr),
      "launching a kernel", *f);
}

// -- users' streams
CUevent of(Event* event) { return reinterpret_cast<CUevent>(event); }

Stream* make_stream(Card* card, Failure* f) {
  const Current current(*card);
  return card->make_stream(*f);
}

void drop_stream(Card* card, Stream* stream) { card->drop_stream(stream); }

Event* make_event(Card* card, bool timed, Failure* f) {
  const Current current(*card);
  CUevent made = nullptr;
  const unsigned flags = cu::event_blocking | (timed ? 0 : cu::event_no_timing);
  if (!card->alive(*f) || !card->ok(card->driver.cuEventCreate(&made, flags), "making an event", *f)) return nullptr;
  return reinterpret_cast<Event*>(made);
}

void drop_event(Card* card, Event* event) {
  const Current current(*card);
  card->driver.cuEventDestroy(of(event));
}

bool record(Card* card, Event* event, Stream* stream, Failure* f) {
  const Current current(*card);
  return card->alive(*f) &&
         card->ok(card->driver.cuEventRecord(of(event), card->stream(stream)), "recording an event", *f);
}

bool wait(Card* card, Stream* stream, Event* event, Failure* f) {
  const Current current(*card);
  return card->alive(*f) &&
         card->ok(card->driver.cuStreamWaitEvent(card->stream(stream), of(event), 0), "waiting for an event", *f);
}

bool passed(Card* card, Event* event, bool* yes, Failure* f) {
  const Current current(*card);
  return card->passed(of(event), *yes, *f);
}

bool elapsed(Card* card, Event* from, Event* to, std::int64_t* ns, Failure* f) {
  const Current current(*card);
  float ms = 0;
  if (!card->alive(*f) || !card->ok(card->driver.cuEventElapsedTime(&ms, of(from), of(to)), "timing", *f)) return false;
  *ns = std::int64_t(double(ms) * 1e6);
  return true;
}

// -- collectives
Ranks* join(Card* card, const char* id, int rank, int world, Failure* f) {
  const Current current(*card);
  auto* const ranks = new Ranks;
  if (card->alive(*f) && ranks->join(id, rank, world, *f)) {
    card->spoil("");
    return ranks;
  }
  delete ranks;
  return nullptr;
}

bool exchange(Card* card, Ranks* ranks, const Collective* calls, int count, Failure* f) {
  const Current current(*card);
  return card->alive(*f) && ranks->run(*card, calls, count, *f);
}

bool ranks_alive(Card* card, Ranks* ranks, Failure* f) {
  const Current current(*card);
  return ranks->alive(*f);
}

void give_up_ranks(Card* card, Ranks* ranks, const char* why) {
  const Current current(*card);
  if (*why) card->spoil(why);
  ranks->give_up(why);
}

void leave(Card* card, Ranks* ranks) {
  const Current current(*card);
  ranks->leave();
  delete ranks;
}

const Table table = [] {
  Table t;
  t.start = start;
  t.describe = describe_card;
  t.open = open_card;
  t.close = close_card;
  t.alive = alive;
  t.allocate = allocate;
  t.release = release;
  t.settle = settle;
  t.memory = memory;
  t.working_bytes = working_bytes;
  t.stamp = stamp;
  t.upload = upload;
  t.download = download;
  t.finish = finish;
  t.clear = clear;
  t.copy = copy;
  t.pace = pace;
  t.knows = knows;
  t.run = run;
  t.begin_capture = begin_capture;
  t.end_capture = end_capture;
  t.replay = replay;
  t.drop = drop;
  t.start_clock = start_clock;
  t.stop_clock = stop_clock;
  t.send = send;
  t.trace_start = trace_start;
  t.trace_call = trace_mark;
  t.trace_stop = trace_stop;
  t.fallbacks = fallbacks;
  t.load = load;
  t.unload = unload;
  t.set_constant = set_constant;
  t.launch = launch;
  t.suggest_block = suggest_block;
  t.make_stream = make_stream;
  t.drop_stream = drop_stream;
  t.make_event = make_event;
  t.drop_event = drop_event;
  t.record = record;
  t.wait = wait;
  t.passed = passed;
  t.elapsed = elapsed;
  t.unique_id = [](char* bytes, Failure* f) { return nccl_unique_id(bytes, *f); };
  t.join = join;
  t.exchange = exchange;
  t.ranks_alive = ranks_alive;
  t.give_up = give_up_ranks;
  t.leave = leave;
  t.kernels = tell_kernels;
  t.source = tell_source;
  t.wants_kernels = wants_kernels;
  t.give_kernels = give_kernels;
  return t;
}();

}  // namespace

}  // namespace rille::device::cuda

extern "C" __attribute__((visibility("default"))) const rille::device::cuda::Table* rille_cuda_plugin(
    std::uint32_t struct_size, const char* build_id) {
  using rille::device::cuda::Table;
  if (struct_size != sizeof(Table) || std::strcmp(build_id, RILLE_CUDA_BUILD_ID) != 0) return nullptr;
  return &rille::device::cuda::table;
}
