// How a test controls the stand-in driver, and its reports. Found by dlsym in the library named by RILLE_CUDA_DRIVER.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rille::test::standin {

struct Options {
  std::uint64_t seed = 1;                           // of the order among runnable streams
  int cards = 1;                                    // RILLE_STANDIN_CARDS; RILLE_STANDIN_FAIL=function:n:code
  int version = 13000;                              // RILLE_STANDIN_VERSION
  const char* model = "Stand-in GPU";               // of every GPU
  bool peers = true;                                // GPUs can access each other's memory
  std::size_t memory_bytes = std::size_t(1) << 30;  // per GPU
  // Planted bugs of a careless plug-in: a wait that is missing or comes too early, a number that is not updated.
  unsigned no_event_waits = 0;   // bit n: cuStreamWaitEvent has no effect on the n-th stream
  bool no_event_syncs = false;   // cuEventSynchronize returns at once
  bool no_stream_syncs = false;  // cuStreamSynchronize returns at once
  bool no_numbers = false;       // cuMemsetD32Async has no effect
  bool early_queries = false;    // cuEventQuery reports completion too early
  // The n-th call (from 1; -1: each) of the function fails; "cuGraphLaunch@1": only GPU 1's. A lost GPU stays lost.
  const char* fail_function = nullptr;
  int fail_at = 0, fail_code = 0;
};

struct Report {
  std::int64_t library_calls = 0, launches = 0, graph_launches = 0, graphs = 0, uploads = 0, numbers = 0;
  std::int64_t peer_copies = 0, peers_enabled = 0;
  std::int64_t failures = 0;  // calls that failed on the test's request
  std::int64_t live_bytes = 0, pinned_bytes = 0, streams = 0, events = 0, modules = 0, contexts = 0;
  char wrong[400] = {};  // the first misuse: a copy outside of memory, a stream that waits for ever,
                         // a module that goes before its kernels have run
};

// Notifications for CUPTI's stand-in: work when it is requested, on the requesting thread, and when it has run.
struct Activity {
  int kind = 0;          // CUPTI_ACTIVITY_KIND_..: 1 a copy, 2 a fill, 10 a kernel
  std::uint8_t how = 0;  // CUPTI_ACTIVITY_MEMCPY_KIND_..
  const char* name = nullptr;
  std::uint64_t bytes = 0, start = 0, end = 0;
  std::uint32_t device = 0, correlation = 0;
};
using Watcher = void (*)(bool has_run, const Activity&);
using Watch = void (*)(Watcher);  // "standin_watch"; null: none

using Reset = void (*)(const Options*);  // "standin_reset": drops all state, including memory
using Tell = void (*)(Report*);          // "standin_report"

}  // namespace rille::test::standin
