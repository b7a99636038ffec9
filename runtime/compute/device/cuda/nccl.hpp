// Collectives by NCCL, loaded at run time and declared here as in its headers of version 2. Ranks is one rank: one card
// of a group, whose other members are in this process or elsewhere. Its calls are queued on the card's stream in order,
// like other work. give_up(), from any thread, ends a call that hangs because another rank died.
//
// NCCL is non-blocking (`blocking` is 0): it may still be at work when a function returns; alive() reports that. No
// other function may be called before it is done. Work queued on the stream after a call runs after it.
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
// As in NCCL 2.14. Newer versions see from `version` that their fields are missing. The part that they copy ends with
// `later`, the first field added since.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeefu, version = 21400;
  int blocking = 0, later = INT_MIN;  // INT_MIN: unset
};
inline constexpr int success = 0, internal_error = 3, in_progress = 7;
// Indexed by DType and by Fold.
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

// The id of a new group, for all its ranks. device: no NCCL.
bool nccl_unique_id(char* bytes, Failure& f);  // bytes = nullptr: only looks for NCCL

struct Ranks {
  std::mutex mutex;           // guards the members below
  nccl::Comm comm = nullptr;  // give_up() may run during a call: NCCL allows that
  std::string why;            // why it was given up
  nccl::Comm now(Failure& f);
  // Starts joining. Needs the card's context current, as the functions below.
  bool join(const char* id, int rank, int world, Failure& f);
  bool run(Card& card, const Collective* calls, int count, Failure& f);
  // Failure::code is nccl::in_progress while NCCL is at work, else 0.
  bool alive(Failure& f);
  void give_up(const char* why);
  void leave();  // once the device has finished all calls; waits a few seconds at most
};

}  // namespace rille::device::cuda
