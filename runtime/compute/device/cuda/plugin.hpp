// The interface between Rille and its CUDA plug-in (librille_cuda.so): one C entry that returns a table of functions.
// The plug-in refuses the id of another build, so both sides share plain structs of the source tree (Call).
//
// No exceptions and no standard library types cross it. A function that can fail returns false (or null) and fills
// `Failure`. Memory that a function returns belongs to the plug-in. Threads: functions marked "any" from any thread,
// the others from one thread at a time, the card's lane. Every function leaves the thread's current context as it was.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::device::cuda {

struct Failure {
  std::int32_t kind = 0;  // an ErrorKind
  std::int32_t code = 0;  // the driver's; 0 for other errors
  char message[640], hint[480];
  Failure() { message[0] = hint[0] = 0; }  // made for every call, so the rest is not cleared
};

struct DriverInfo {
  std::int32_t version = 0;  // the CUDA version that it supports: 13000
  std::int32_t cards = 0;
  char path[640] = {};
};

// Rille's own kernels in the plug-in.
struct Kernels {
  std::int32_t cuda = 0;                // version that made the images, 13000; 0: no images
  std::int32_t ptx = 0;                 // of the PTX among them, 90; 0: no PTX
  std::int32_t architectures[16] = {};  // of the images; zero-terminated
  std::int32_t sources = 0;             // files that NVRTC compiles if no image fits
};
// Code for one architecture also runs on later ones of its generation: sm_80's on an sm_89.
inline bool has_image(const Kernels& k, int architecture) {
  for (const auto a : k.architectures)
    if (a && a / 10 == architecture / 10 && a <= architecture) return true;
  return k.ptx && architecture >= k.ptx;
}

struct KernelSource {
  const char *name, *text;  // "kernels/cuda/attention.cu"; zero-terminated
  std::size_t bytes;
  bool kernels;  // compiled by itself; false: a header for the others
  bool joined;   // false: compiled with -fmad=false
};

struct CardInfo {
  char name[256] = {};            // "NVIDIA H200"
  char uuid[48] = {};             // "GPU-...", "MIG-..." for an instance
  char bus[24] = {};              // "0000:1b:00.0"
  std::int32_t architecture = 0;  // 90: sm_90
  std::int32_t multiprocessors = 0;
  std::int32_t shared_bytes_max = 0;  // per block
  std::int32_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
};

struct Card;      // one opened device
struct Sequence;  // captured calls
struct Function;  // of a user's kernel
struct Stream;    // beside the card's own stream
struct Event;     // a place in a stream

struct Shape {
  unsigned grid[3], block[3], shared_bytes;
  bool cooperative;
  Stream* stream;  // null: the card's own
};

struct Ranks;  // a card's membership in an NCCL group

struct Collective {
  enum Kind : std::int32_t { all_reduce, broadcast, all_gather, reduce_scatter, send, receive };
  Kind kind;
  std::int32_t dtype, reduce, peer;  // a DType, a kernels::Fold, a rank
  const void* in;
  void* out;
  std::size_t count;  // as in NCCL: elements per rank
};

struct TraceRecord {
  std::uint64_t call;      // from trace_call(); 0: none, an upload
  const char* name;        // of the kernel; "copy in", "fill"
  std::int64_t ns, bytes;  // bytes: of a copy or a fill
};

// An operation that a library declined, or whose library is missing, so that Rille's own kernel ran.
struct Fallback {
  const char *library, *operation, *why;  // why: the first reason
  std::int64_t calls;                     // without replays
};

struct Table {
  std::uint32_t struct_size = sizeof(Table);

  bool (*start)(DriverInfo*, Failure*) = nullptr;                // any; finds and loads the driver, once
  bool (*describe)(int ordinal, CardInfo*, Failure*) = nullptr;  // any
  Card* (*open)(int ordinal, Failure*) = nullptr;                // any
  void (*close)(Card*) = nullptr;                                // once nothing uses it
  bool (*alive)(Card*, Failure*) = nullptr;                      // any; false: the card is lost

  void* (*allocate)(Card*, std::size_t bytes) = nullptr;                     // any; null: out of memory
  void (*release)(Card*, void* data) = nullptr;                              // any; after settle()
  void (*settle)(Card*) = nullptr;                                           // any; waits for all queued work
  bool (*memory)(Card*, std::int64_t* free, std::int64_t* total) = nullptr;  // any
  std::int64_t (*working_bytes)(Card*) = nullptr;  // any; the plug-in's memory beside `allocate`

  std::uint64_t (*stamp)(Card*) = nullptr;  // any
  // Any thread. Runs after the work that `stamp` covers, before work queued later.
  bool (*upload)(Card*, void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure*) = nullptr;
  bool (*download)(Card*, void* to, const void* from, std::size_t bytes, Failure*) = nullptr;
  bool (*finish)(Card*, Failure*) = nullptr;
  bool (*clear)(Card*, void* at, std::size_t bytes, Failure*) = nullptr;
  bool (*copy)(Card*, void* to, const void* from, std::size_t bytes, Failure*) = nullptr;
  bool (*pace)(Card*, Failure*) = nullptr;

  bool (*knows)(kernels::OpId) = nullptr;  // any
  bool (*run)(Card*, kernels::OpId, const kernels::Call*, Failure*) = nullptr;
  bool (*begin_capture)(Card*, Failure*) = nullptr;
  Sequence* (*end_capture)(Card*, Failure*) = nullptr;
  bool (*replay)(Card*, Sequence*, std::uint64_t seed, std::uint64_t step, Failure*) = nullptr;
  void (*drop)(Card*, Sequence*) = nullptr;  // any
  bool (*start_clock)(Card*, Failure*) = nullptr;
  bool (*stop_clock)(Card*, std::int64_t* ns, Failure*) = nullptr;

  // Traces kernels and copies by CUPTI. trace_stop waits, then reports each record.
  bool (*trace_start)(Card*, Failure*) = nullptr;
  void (*trace_call)(Card*, std::uint64_t call) = nullptr;  // the call of later launches; 0: none
  bool (*trace_stop)(Card*, void (*each)(void* to, const TraceRecord*), void* to, Failure*) = nullptr;

  void (*fallbacks)(Card*, void (*each)(void* to, const Fallback*), void* to) = nullptr;  // any

  // Copies to another card's memory: after work queued on this card and the other card's work that `stamp` covers,
  // before work queued later on the other card. This card's lane.
  bool (*send)(Card*, Card* other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp,
               Failure*) = nullptr;

  // A user's kernel, as a module of its own. `image` may be freed on return.
  Function* (*load)(Card*, const void* image, const char* name, Failure*) = nullptr;  // any
  void (*unload)(Card*, Function*) = nullptr;                                         // any; waits
  bool (*set_constant)(Card*, Function*, const char* name, const void* bytes, std::size_t, Failure*) = nullptr;  // any
  bool (*launch)(Card*, Function*, const Shape*, void** arguments, Failure*) = nullptr;
  bool (*suggest_block)(Card*, Function*, int* threads, Failure*) = nullptr;  // any

  // Users' streams; null is the card's own stream. Only wait() orders two streams; settle() waits for all, finish() for
  // the card's own.
  Stream* (*make_stream)(Card*, Failure*) = nullptr;            // any
  void (*drop_stream)(Card*, Stream*) = nullptr;                // any; its queued work continues
  Event* (*make_event)(Card*, bool timed, Failure*) = nullptr;  // any
  void (*drop_event)(Card*, Event*) = nullptr;                  // any
  bool (*record)(Card*, Event*, Stream*, Failure*) = nullptr;
  bool (*wait)(Card*, Stream*, Event*, Failure*) = nullptr;
  bool (*passed)(Card*, Event*, bool* yes, Failure*) = nullptr;                          // any
  bool (*elapsed)(Card*, Event* from, Event* to, std::int64_t* ns, Failure*) = nullptr;  // any

  // Collectives by NCCL: queued like launches, in the same order on all ranks.
  bool (*unique_id)(char* bytes, Failure*) = nullptr;  // 128 bytes; null: only looks for NCCL. Any thread
  Ranks* (*join)(Card*, const char* id, int rank, int world, Failure*) = nullptr;     // any; only starts joining
  bool (*exchange)(Card*, Ranks*, const Collective*, int count, Failure*) = nullptr;  // several calls as one
  bool (*ranks_alive)(Card*, Ranks*, Failure*) = nullptr;                             // any; code 7: NCCL is still busy
  void (*give_up)(Card*, Ranks*, const char* why) = nullptr;                          // any; "": nothing is lost
  void (*leave)(Card*, Ranks*) = nullptr;                                             // once nothing uses it

  // Rille's own kernels. A card that no image fits gets the sources compiled for it before its first operation.
  void (*kernels)(Kernels*) = nullptr;                                 // any; needs no driver
  bool (*source)(int number, KernelSource*) = nullptr;                 // any; from 0; false: no more
  bool (*wants_kernels)(Card*) = nullptr;                              // no image fits, and none was given
  bool (*give_kernels)(Card*, const void* image, Failure*) = nullptr;  // `image` may be freed on return
};

// The type of "rille_cuda_plugin". null: another build.
using Entry = const Table* (*)(std::uint32_t struct_size, const char* build_id);

}  // namespace rille::device::cuda
