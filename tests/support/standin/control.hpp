// How a test steers the stand-in driver, and what it tells. Found by dlsym in the library that RILLE_CUDA_DRIVER names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rille::test::standin {

struct Options {
  std::uint64_t seed = 1;                           // of the order among streams that could go on
  int cards = 1;                                    // RILLE_STANDIN_CARDS; RILLE_STANDIN_FAIL=function:n:code
  int version = 13000;                              // RILLE_STANDIN_VERSION
  const char* model = "Stand-in GPU";               // of every card
  bool peers = true;                                // a card's memory can be reached from another card
  std::size_t memory_bytes = std::size_t(1) << 30;  // of a card
  // Planted bugs, as a careless plug-in would have them: a wait that is missing or comes too early, a number that
  // is not brought up to date.
  unsigned no_event_waits = 0;   // bit n: cuStreamWaitEvent does nothing on the n-th stream that was made
  bool no_event_syncs = false;   // cuEventSynchronize returns at once
  bool no_stream_syncs = false;  // cuStreamSynchronize too
  bool no_numbers = false;       // cuMemsetD32Async does nothing
  bool early_queries = false;    // cuEventQuery says that it is done before it is
  // The n-th call (from 1; -1: each) of it fails; "cuGraphLaunch@1": of card 1's only. A loss stays, on its card.
  const char* fail_function = nullptr;
  int fail_at = 0, fail_code = 0;
};

struct Report {
  std::int64_t library_calls = 0, launches = 0, graph_launches = 0, graphs = 0, uploads = 0, numbers = 0;
  std::int64_t peer_copies = 0, peers_enabled = 0;
  std::int64_t failures = 0;  // calls that failed because the test asked for it
  std::int64_t live_bytes = 0, pinned_bytes = 0, streams = 0, events = 0, modules = 0, contexts = 0;
  char wrong[400] = {};  // the first misuse: a copy outside of memory, a stream that waits for ever,
                         // a module that goes before its kernels have run
};

// What CUPTI's stand-in sees: work when it is asked for, on the asking thread, and when it has run.
struct Activity {
  int kind = 0;          // CUPTI_ACTIVITY_KIND_..: 1 a copy, 2 a fill, 10 a kernel
  std::uint8_t how = 0;  // CUPTI_ACTIVITY_MEMCPY_KIND_..
  const char* name = nullptr;
  std::uint64_t bytes = 0, start = 0, end = 0;
  std::uint32_t device = 0, correlation = 0;
};
using Watcher = void (*)(bool has_run, const Activity&);
using Watch = void (*)(Watcher);  // "standin_watch"; null: nobody watches

using Reset = void (*)(const Options*);  // "standin_reset": everything before is forgotten, memory too
using Tell = void (*)(Report*);          // "standin_report"

}  // namespace rille::test::standin
