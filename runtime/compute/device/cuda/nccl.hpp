// Collectives by NCCL, found and loaded at run time, declared here as its header of version 2 does. Ranks is one rank:
// one card's place among others, in this process or elsewhere. Its calls are given to the card's stream in order, like
// all other work. A hung call (another rank died) is ended by give_up(), from any thread.
//
// NCCL never blocks here (its `blocking` is 0): it may still be at what it was told when a function returns, and
// alive() tells. Nothing else is asked of it before, and what is given to the stream behind a call comes after that.
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
// As NCCL 2.14 had it: later ones see by the version that the rest is not there. What they copy of it ends behind
// `later`, the first of their own.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeefu, version = 21400;
  int blocking = 0, later = INT_MIN;  // INT_MIN: not said
};
inline constexpr int success = 0, internal_error = 3, in_progress = 7;
// Of DType and Fold, in their order.
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

// A new one's name, for all ranks. device: there is no NCCL.
bool nccl_unique_id(char* bytes, Failure& f);

struct Ranks {
  std::mutex mutex;           // of what follows
  nccl::Comm comm = nullptr;  // give_up() may come while a call is given: NCCL allows that
  std::string why;            // it was given up
  nccl::Comm now(Failure& f);
  // Begins to. The card's context is current, here and below.
  bool join(const char* id, int rank, int world, Failure& f);
  bool run(Card& card, const Collective* calls, int count, Failure& f);
  // Failure::code is nccl::in_progress while NCCL is at what it was told, and else 0.
  bool alive(Failure& f);
  void give_up(const char* why);
  void leave();  // when the device has done all calls; not longer than a few seconds
};

}  // namespace rille::device::cuda
