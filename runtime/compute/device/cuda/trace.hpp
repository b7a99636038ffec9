// Traces a GPU's activity with CUPTI, which is loaded at run time and declared here as in its headers of CUDA 12 and
// 13. The GPU times kernels and copies while work continues; nothing waits for the trace. Launches between
// trace_call(n) and trace_call(0) are recorded with the number n.
//
// CUPTI is global to the process, so only one trace runs at a time, of one card. Threads: functions are called on the
// card's lane; CUPTI calls its buffer callbacks on a thread of CUPTI.
#pragma once

#include <cstdint>

#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

namespace cupti {
using Status = int;
constexpr int kind_copy = 1, kind_fill = 2, kind_driver = 4, kind_runtime = 5, kind_kernel = 10, kind_external = 39;
constexpr int external_kind = 3;  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
constexpr unsigned flush_forced = 1;

// The leading fields of CUPTI's records, unchanged since CUDA 9.
struct Kernel {
  int kind;
  std::uint8_t cache, shared;
  std::uint16_t registers;
  int partitioned[2];
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3], static_shared, dynamic_shared;
  std::uint32_t local_each, local_total, correlation;
  std::int64_t grid_id;
  const char* name;
};
struct Move {  // record of a memory copy or fill
  int kind;
  std::uint8_t how, from, to, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
};
struct External {
  int kind, external_kind;
  std::uint64_t id;
  std::uint32_t correlation, reserved;
};

using Request = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_max);
using Complete = void (*)(CUcontext, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes, std::size_t valid);

#define RILLE_CUPTI(X)                                                                    \
  X(cuptiActivityRegisterCallbacks, (Request, Complete))                                  \
  X(cuptiActivityEnable, (int kind))                                                      \
  X(cuptiActivityDisable, (int kind))                                                     \
  X(cuptiActivityFlushAll, (std::uint32_t flags))                                         \
  X(cuptiActivityGetNextRecord, (std::uint8_t * buffer, std::size_t valid, int** record)) \
  X(cuptiActivityPushExternalCorrelationId, (int kind, std::uint64_t id))                 \
  X(cuptiActivityPopExternalCorrelationId, (int kind, std::uint64_t* last))               \
  X(cuptiGetResultString, (Status, const char** text))
}  // namespace cupti

struct Card;

// false: CUPTI is missing, another tool uses CUPTI, or another trace runs.
bool start_trace(Card& card, Failure& f);
void trace_call(std::uint64_t id);
// Waits for the card, then calls `each` for every record.
bool stop_trace(Card& card, void (*each)(void* to, const TraceRecord*), void* to, Failure& f);

// Ends the card's trace, if one runs, and drops its records. Call it when the card closes.
void drop_trace(const Card& card);

}  // namespace rille::device::cuda
