// What Rille and its CUDA plug-in (librille_cuda.so) say to each other: one C entry that gives a table of functions.
// Both sides are of one build: the plug-in refuses another build's id, so plain structs of the tree may pass (Call).
//
// Nothing throws across, no standard library's type passes. A function that can fail returns false (or null) and fills
// `Failure`. Memory that a function returns belongs to the plug-in. Threads: those marked "any" from any thread, the
// others from one thread at a time, the card's lane. Every function leaves the thread's current context as it was.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::device::cuda {

struct Failure {
  std::int32_t kind = 0;  // an ErrorKind
  std::int32_t code = 0;  // the driver's, 0 when it is not the driver's
  char message[640], hint[480];
  Failure() { message[0] = hint[0] = 0; }  // made for every call: not cleared
};

struct DriverInfo {
  std::int32_t version = 0;  // the CUDA that it supports: 13000
  std::int32_t cards = 0;
  char path[640] = {};
};

// The plug-in's own kernels, as it was built.
struct Kernels {
  std::int32_t cuda = 0;                // of the images, 13000; 0: there are no images
  std::int32_t ptx = 0;                 // of the PTX among them, 90; 0: there is none
  std::int32_t architectures[16] = {};  // of the images; a zero behind the last
  std::int32_t sources = 0;             // files that a machine's NVRTC compiles where no image fits
};
// Code for one architecture runs on the later ones of the same generation: sm_80's on an sm_89.
inline bool has_image(const Kernels& k, int architecture) {
  for (const auto a : k.architectures)
    if (a && a / 10 == architecture / 10 && a <= architecture) return true;
  return k.ptx && architecture >= k.ptx;
}

struct KernelSource {
  const char *name, *text;  // "kernels/cuda/attention.cu"; a zero behind the text
  std::size_t bytes;
  bool kernels;  // compiled by itself; false: a header of the others
  bool joined;   // false: compiled with -fmad=false
};

struct CardInfo {
  char name[256] = {};            // "NVIDIA H200"
  char uuid[48] = {};             // "GPU-...", "MIG-..." for an instance
  char bus[24] = {};              // "0000:1b:00.0"
  std::int32_t architecture = 0;  // 90: sm_90
  std::int32_t multiprocessors = 0;
  std::int32_t shared_bytes_max = 0;  // of a block
  std::int32_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
};

struct Card;      // one opened device
struct Sequence;  // captured calls
struct Function;  // of a user's kernel
struct Stream;    // beside the card's own
struct Event;     // a place in a stream

struct Shape {
  unsigned grid[3], block[3], shared_bytes;
  bool cooperative;
  Stream* stream;  // null: the card's own
};

struct Ranks;  // a card's place among others, by NCCL

struct Collective {
  enum Kind : std::int32_t { all_reduce, broadcast, all_gather, reduce_scatter, send, receive };
  Kind kind;
  std::int32_t dtype, reduce, peer;  // a DType, a kernels::Fold, a rank
  const void* in;
  void* out;
  std::size_t count;  // as NCCL counts: elements of one rank
};

struct TraceRecord {
  std::uint64_t call;      // what trace_call() named; 0: nobody's, an upload
  const char* name;        // of the kernel; "copy in", "fill"
  std::int64_t ns, bytes;  // bytes: of a copy or a fill
};

// Where a library declined, or is not there, and Rille's own kernel was launched instead.
struct Fallback {
  const char *library, *operation, *why;  // why: the first time
  std::int64_t calls;                     // a replay's are not counted
};

struct Table {
  std::uint32_t struct_size = sizeof(Table);

  bool (*start)(DriverInfo*, Failure*) = nullptr;                // any; finds and loads the driver, once
  bool (*describe)(int ordinal, CardInfo*, Failure*) = nullptr;  // any
  Card* (*open)(int ordinal, Failure*) = nullptr;                // any
  void (*close)(Card*) = nullptr;                                // when nobody uses it any more
  bool (*alive)(Card*, Failure*) = nullptr;                      // any; false: lost, and why

  void* (*allocate)(Card*, std::size_t bytes) = nullptr;                     // any; null: no more
  void (*release)(Card*, void* data) = nullptr;                              // any; after settle()
  void (*settle)(Card*) = nullptr;                                           // any; waits for all that was asked for
  bool (*memory)(Card*, std::int64_t* free, std::int64_t* total) = nullptr;  // any
  std::int64_t (*working_bytes)(Card*) = nullptr;  // any; what the plug-in has taken beside `allocate`

  std::uint64_t (*stamp)(Card*) = nullptr;  // any
  // Any thread. After the work that `stamp` covers, before what is asked for from now on.
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

  // Kernel by kernel, by CUPTI. false: it cannot here, and why. stop waits, and gives each record.
  bool (*trace_start)(Card*, Failure*) = nullptr;
  void (*trace_call)(Card*, std::uint64_t call) = nullptr;  // from here on; 0: nobody's
  bool (*trace_stop)(Card*, void (*each)(void* to, const TraceRecord*), void* to, Failure*) = nullptr;

  void (*fallbacks)(Card*, void (*each)(void* to, const Fallback*), void* to) = nullptr;  // any

  // To another card's memory: after what this card was given, and after the other's work that `stamp` covers, before
  // what the other is given from now on. This card's lane.
  bool (*send)(Card*, Card* other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp,
               Failure*) = nullptr;

  // A user's kernel: its own module. `image` may go when it returns.
  Function* (*load)(Card*, const void* image, const char* name, Failure*) = nullptr;  // any
  void (*unload)(Card*, Function*) = nullptr;                                         // any; waits
  bool (*set_constant)(Card*, Function*, const char* name, const void* bytes, std::size_t, Failure*) = nullptr;  // any
  bool (*launch)(Card*, Function*, const Shape*, void** arguments, Failure*) = nullptr;
  bool (*suggest_block)(Card*, Function*, int* threads, Failure*) = nullptr;  // any

  // Streams of users. Where a stream is named, null is the card's own. Nothing but wait() orders two of them; settle()
  // waits for all, finish() for the card's own.
  Stream* (*make_stream)(Card*, Failure*) = nullptr;            // any
  void (*drop_stream)(Card*, Stream*) = nullptr;                // any; what it was given goes on
  Event* (*make_event)(Card*, bool timed, Failure*) = nullptr;  // any
  void (*drop_event)(Card*, Event*) = nullptr;                  // any
  bool (*record)(Card*, Event*, Stream*, Failure*) = nullptr;
  bool (*wait)(Card*, Stream*, Event*, Failure*) = nullptr;
  bool (*passed)(Card*, Event*, bool* yes, Failure*) = nullptr;                          // any
  bool (*elapsed)(Card*, Event* from, Event* to, std::int64_t* ns, Failure*) = nullptr;  // any

  // Collectives by NCCL: given like launches, all ranks in the same order.
  bool (*unique_id)(char* bytes, Failure*) = nullptr;                                 // any; 128 bytes
  Ranks* (*join)(Card*, const char* id, int rank, int world, Failure*) = nullptr;     // any; begins to
  bool (*exchange)(Card*, Ranks*, const Collective*, int count, Failure*) = nullptr;  // several as one
  bool (*ranks_alive)(Card*, Ranks*, Failure*) = nullptr;     // any; code 7: NCCL is still busy with it
  void (*give_up)(Card*, Ranks*, const char* why) = nullptr;  // any; "": nothing is lost
  void (*leave)(Card*, Ranks*) = nullptr;                     // when nobody uses it

  // Rille's own kernels. A card that no image fits is given the sources, compiled for it, before it runs anything.
  void (*kernels)(Kernels*) = nullptr;                                 // any; needs no driver
  bool (*source)(int number, KernelSource*) = nullptr;                 // any; from 0; false: there are no more
  bool (*wants_kernels)(Card*) = nullptr;                              // no image fits, and none was given
  bool (*give_kernels)(Card*, const void* image, Failure*) = nullptr;  // `image` may go when it returns
};

// "rille_cuda_plugin". null: another build.
using Entry = const Table* (*)(std::uint32_t struct_size, const char* build_id);

}  // namespace rille::device::cuda
