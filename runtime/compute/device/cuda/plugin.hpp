// The interface between Rille and its CUDA plug-in (librille_cuda.so): one C entry that returns a table of functions.
// The plug-in refuses the build id of another build, so both sides may share plain structs of the source tree (Call).
//
// No exceptions and no standard library types cross the interface. A function that can fail returns false (or null) and
// fills `Failure`. Memory that a function returns belongs to the plug-in. Threads: functions marked "any thread" from
// any thread, all others from one thread at a time, the card's lane. Every function leaves the calling thread's current
// CUDA context as it was.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::device::cuda {

struct Failure {
  std::int32_t kind = 0;  // the value of an ErrorKind
  std::int32_t code = 0;  // the driver's CUresult; 0: an error of other origin
  char message[640], hint[480];
  Failure() { message[0] = hint[0] = 0; }  // one is made for every call, so clear only what is read
};

struct DriverInfo {
  std::int32_t version = 0;  // the CUDA version that the driver supports: 13000
  std::int32_t cards = 0;
  char path[640] = {};
};

// Describes Rille's own kernels in the plug-in.
struct Kernels {
  std::int32_t cuda = 0;                // CUDA version that compiled the images, 13000; 0: no images
  std::int32_t ptx = 0;                 // architecture of the PTX, 90 for sm_90; 0: no PTX
  std::int32_t architectures[16] = {};  // architectures of the images; a zero ends the list
  std::int32_t sources = 0;             // number of source files that NVRTC compiles if no image fits
};
// Whether an image runs on the architecture. Code for an architecture also runs on later architectures of its
// generation: code for sm_80 runs on sm_89.
inline bool has_image(const Kernels& k, int architecture) {
  for (const auto a : k.architectures)
    if (a && a / 10 == architecture / 10 && a <= architecture) return true;
  return k.ptx && architecture >= k.ptx;
}

struct KernelSource {
  const char *name, *text;  // "kernels/cuda/attention.cu", and the file's zero-terminated text
  std::size_t bytes;
  bool kernels;  // true: a source file with kernels; false: a header
  bool joined;   // whether a * b + c may become one fused operation; false: -fmad=false
};

struct CardInfo {
  char name[256] = {};            // the product's name: "NVIDIA H200"
  char uuid[48] = {};             // "GPU-..."; "MIG-..." for a MIG instance
  char bus[24] = {};              // PCI address: "0000:1b:00.0"
  std::int32_t architecture = 0;  // 90 for sm_90
  std::int32_t multiprocessors = 0;
  std::int32_t shared_bytes_max = 0;  // shared memory that a block may use
  std::int32_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
};

struct Card;      // one opened GPU
struct Sequence;  // a captured sequence of calls
struct Function;  // a loaded kernel of a user
struct Stream;    // a user's stream, beside the card's default stream
struct Event;     // a position in a stream

struct Shape {
  unsigned grid[3], block[3], shared_bytes;
  bool cooperative;
  Stream* stream;  // null: the card's default stream
};

struct Ranks;  // a card's membership in an NCCL group

struct Collective {
  enum Kind : std::int32_t { all_reduce, broadcast, all_gather, reduce_scatter, send, receive };
  Kind kind;
  // dtype: a DType; reduce: a kernels::Fold; peer: the other rank of send and receive
  std::int32_t dtype, reduce, peer;
  const void* in;
  void* out;
  std::size_t count;  // number of elements per rank, as NCCL counts
};

struct TraceRecord {
  std::uint64_t call;      // number from trace_call(); 0: none was set, or an upload
  const char* name;        // name of the kernel, or "copy in", "fill", ..
  std::int64_t ns, bytes;  // ns: duration; bytes: size of a copy or a fill
};

// An operation for which Rille's own kernel ran, because a library declined it or is missing.
struct Fallback {
  const char *library, *operation, *why;  // why: the reason at the first such call
  std::int64_t calls;                     // number of calls; replays do not count
};

struct Table {
  std::uint32_t struct_size = sizeof(Table);

  bool (*start)(DriverInfo*, Failure*) = nullptr;  // any thread; finds and loads the driver at the first call
  bool (*describe)(int ordinal, CardInfo*, Failure*) = nullptr;  // on any thread
  Card* (*open)(int ordinal, Failure*) = nullptr;                // on any thread
  void (*close)(Card*) = nullptr;                                // call it after the last use of the card
  bool (*alive)(Card*, Failure*) = nullptr;                      // any thread; false: the card is lost

  void* (*allocate)(Card*, std::size_t bytes) = nullptr;                     // any thread; null: out of memory
  void (*release)(Card*, void* data) = nullptr;                              // any thread; call settle() first
  void (*settle)(Card*) = nullptr;                                           // any thread; waits for all queued work
  bool (*memory)(Card*, std::int64_t* free, std::int64_t* total) = nullptr;  // on any thread
  std::int64_t (*working_bytes)(Card*) = nullptr;  // any thread; memory that the plug-in uses besides `allocate`

  std::uint64_t (*stamp)(Card*) = nullptr;  // on any thread
  // Any thread. The copy runs after the work that `stamp` covers and before work that is queued later.
  bool (*upload)(Card*, void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure*) = nullptr;
  bool (*download)(Card*, void* to, const void* from, std::size_t bytes, Failure*) = nullptr;
  bool (*finish)(Card*, Failure*) = nullptr;
  bool (*clear)(Card*, void* at, std::size_t bytes, Failure*) = nullptr;
  bool (*copy)(Card*, void* to, const void* from, std::size_t bytes, Failure*) = nullptr;
  bool (*pace)(Card*, Failure*) = nullptr;

  bool (*knows)(kernels::OpId) = nullptr;  // on any thread
  bool (*run)(Card*, kernels::OpId, const kernels::Call*, Failure*) = nullptr;
  bool (*begin_capture)(Card*, Failure*) = nullptr;
  Sequence* (*end_capture)(Card*, Failure*) = nullptr;
  bool (*replay)(Card*, Sequence*, std::uint64_t seed, std::uint64_t step, Failure*) = nullptr;
  void (*drop)(Card*, Sequence*) = nullptr;  // on any thread
  bool (*start_clock)(Card*, Failure*) = nullptr;
  bool (*stop_clock)(Card*, std::int64_t* ns, Failure*) = nullptr;

  // Traces kernels and copies with CUPTI. trace_stop waits for the traced work, then calls `each` for every record.
  bool (*trace_start)(Card*, Failure*) = nullptr;
  void (*trace_call)(Card*, std::uint64_t call) = nullptr;  // number for the records of later launches; 0: no number
  bool (*trace_stop)(Card*, void (*each)(void* to, const TraceRecord*), void* to, Failure*) = nullptr;

  void (*fallbacks)(Card*, void (*each)(void* to, const Fallback*), void* to) = nullptr;  // on any thread

  // Copies to another card's memory. The copy runs after the work queued on this card and after the other card's work
  // that `stamp` covers, and before work that is queued on the other card later. Call it on this card's lane.
  bool (*send)(Card*, Card* other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp,
               Failure*) = nullptr;

  // A user's kernel, loaded as a separate CUDA module. The caller may free `image` when load() returns.
  Function* (*load)(Card*, const void* image, const char* name, Failure*) = nullptr;  // on any thread
  void (*unload)(Card*, Function*) = nullptr;  // any thread; waits for queued work
  // May be called on any thread.
  bool (*set_constant)(Card*, Function*, const char* name, const void* bytes, std::size_t, Failure*) = nullptr;
  bool (*launch)(Card*, Function*, const Shape*, void** arguments, Failure*) = nullptr;
  bool (*suggest_block)(Card*, Function*, int* threads, Failure*) = nullptr;  // on any thread

  // Users' streams; a null Stream is the card's default stream. Work on two streams is unordered unless wait() orders
  // it. settle() waits for all streams, finish() only for the default stream.
  Stream* (*make_stream)(Card*, Failure*) = nullptr;            // on any thread
  void (*drop_stream)(Card*, Stream*) = nullptr;                // any thread; the stream's queued work continues
  Event* (*make_event)(Card*, bool timed, Failure*) = nullptr;  // on any thread
  void (*drop_event)(Card*, Event*) = nullptr;                  // on any thread
  bool (*record)(Card*, Event*, Stream*, Failure*) = nullptr;
  bool (*wait)(Card*, Stream*, Event*, Failure*) = nullptr;
  bool (*passed)(Card*, Event*, bool* yes, Failure*) = nullptr;                          // on any thread
  bool (*elapsed)(Card*, Event* from, Event* to, std::int64_t* ns, Failure*) = nullptr;  // on any thread

  // Collectives by NCCL are queued like launches; all ranks must queue them in the same order.
  bool (*unique_id)(char* bytes, Failure*) = nullptr;  // any thread; 128 bytes; null: only looks for NCCL
  // On any thread; starts joining and returns at once.
  Ranks* (*join)(Card*, const char* id, int rank, int world, Failure*) = nullptr;
  // Queues `count` calls as one group.
  bool (*exchange)(Card*, Ranks*, const Collective*, int count, Failure*) = nullptr;
  bool (*ranks_alive)(Card*, Ranks*, Failure*) = nullptr;     // any thread; Failure::code 7: NCCL is still busy
  void (*give_up)(Card*, Ranks*, const char* why) = nullptr;  // any thread; `why` "": no result is lost
  void (*leave)(Card*, Ranks*) = nullptr;                     // call it after the last use of `Ranks`

  // Rille's own kernels. If no image fits the card, the caller compiles the sources and passes the results to
  // give_kernels before the first operation.
  void (*kernels)(Kernels*) = nullptr;                  // any thread; needs no driver
  bool (*source)(int number, KernelSource*) = nullptr;  // any thread; `number` counts from 0; false: no such file
  bool (*wants_kernels)(Card*) = nullptr;               // true: no image fits the card, and give_kernels was not called
  bool (*give_kernels)(Card*, const void* image, Failure*) = nullptr;  // the caller may free `image` afterwards
};

// The type of the entry "rille_cuda_plugin". It returns null to a caller of another build.
using Entry = const Table* (*)(std::uint32_t struct_size, const char* build_id);

}  // namespace rille::device::cuda
