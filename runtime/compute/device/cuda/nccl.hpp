// Collectives by NCCL, loaded at run time and declared here as in its headers of version 2. A Ranks object is one rank,
// one card, of a group; the group's other ranks are in this process or elsewhere. Calls are queued on the card's stream
// in order, like other work. give_up(), from any thread, ends a call that hangs because another rank died.
//
// We use NCCL in non-blocking mode (`blocking` is 0): a function may return while NCCL is still working, which alive()
// reports; until it is done no other function may be called. Work queued on the stream after a call runs after that
// call.
#pragma once

#include <climits>
#include <cstddef>
#include <mutex>
#include <string>

#include "runtime/compute/device/cuda/driver.hpp"
#include "runtime/compute/device/cuda/plugin.hpp"

namespace rille::device::cuda {

struct Card;

namespace nccl {
using Comm = struct ncclCommOpaque*;
struct UniqueId {
  char bytes[128];
};
// ncclConfig_t as in NCCL 2.14. Newer NCCL versions see from `version` which of their fields are missing. They copy the
// fields up to `later`, the first field added after 2.14.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeefu, version = 21400;
  int blocking = 0, later = INT_MIN;  // INT_MIN: not set
};
inline constexpr int success = 0, internal_error = 3, in_progress = 7;
// NCCL's constants: `types` by DType, `reductions` by Fold.
inline constexpr int types[] = {1, 1, 0, 2, 4, 6, 9, 7, 8};
inline constexpr int reductions[] = {0, 4, 2, 3, 1};
}  // namespace nccl

#define RILLE_NCCL(X)                                                                                                 \
  X(ncclGetUniqueId, (nccl::UniqueId*))                                                                               \
  X(ncclCommInitRankConfig, (nccl::Comm*, int ranks, nccl::UniqueId, int rank, nccl::Config*))                        \
  X(ncclCommFinalize, (nccl::Comm))                                                                                   \
  X(ncclCommDestroy, (nccl::Comm))                                                                                    \
  X(ncclCommAbort, (nccl::Comm))                                                                                      \
  X(ncclCommGetAsyncError, (nccl::Comm, int* error))                                                                  \
  X(ncclAllReduce, (const void* in, void* out, std::size_t count, int type, int reduction, nccl::Comm, CUstream))     \
  X(ncclBroadcast, (const void* in, void* out, std::size_t count, int type, int root, nccl::Comm, CUstream))          \
  X(ncclReduceScatter, (const void* in, void* out, std::size_t count, int type, int reduction, nccl::Comm, CUstream)) \
  X(ncclAllGather, (const void* in, void* out, std::size_t count, int type, nccl::Comm, CUstream))                    \
  X(ncclSend, (const void* in, std::size_t count, int type, int peer, nccl::Comm, CUstream))                          \
  X(ncclRecv, (void* out, std::size_t count, int type, int peer, nccl::Comm, CUstream))                               \
  X(ncclGroupStart, ())                                                                                               \
  X(ncclGroupEnd, ())

// Writes the id of a new group, 128 bytes, which every rank passes to join(). With bytes = nullptr it only looks for
// NCCL. Error of kind device: NCCL is missing.
bool nccl_unique_id(char* bytes, Failure& f);

struct Ranks {
  std::mutex mutex;           // guards comm and why
  nccl::Comm comm = nullptr;  // null after give_up(), which may run during another call: NCCL allows that
  std::string why;            // the reason given to give_up()
  nccl::Comm now(Failure& f);
  // Starts joining the group. For join() and the functions below the card's context must be current.
  bool join(const char* id, int rank, int world, Failure& f);
  bool run(Card& card, const Collective* calls, int count, Failure& f);
  // Whether the group has not failed. Sets Failure::code to nccl::in_progress while NCCL is still working, else to 0.
  bool alive(Failure& f);
  void give_up(const char* why);
  void leave();  // call it after the device has finished all calls; waits at most a few seconds
};

}  // namespace rille::device::cuda
