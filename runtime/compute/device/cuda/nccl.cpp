#include "runtime/compute/device/cuda/nccl.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/fold.hpp"
#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/compute/device/cuda/symbols.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {

constexpr std::chrono::seconds leave_max{5};

struct Library {
#define RILLE_MEMBER(name, parameters) int(*name) parameters = nullptr;
  RILLE_NCCL(RILLE_MEMBER)
#undef RILLE_MEMBER
  const char* (*ncclGetErrorString)(int) = nullptr;
  bool whole = false;

  Library() {
    Symbols found(CudaPart::nccl);
#define RILLE_FIND(name, parameters) found.find(name, #name);
    RILLE_NCCL(RILLE_FIND)
#undef RILLE_FIND
    found.find(ncclGetErrorString, "ncclGetErrorString");
    whole = found.whole();
  }
};

const Library& library() {
  static const Library l;
  return l;
}

bool found(Failure& f) {
  if (left_out(CudaPart::nccl)) {
    return refuse(f, int(ErrorKind::device),
                  "RILLE_CUDA_WITHOUT excludes NCCL: change that variable, or use device = \"cpu\"",
                  "communicators on GPUs need NCCL");
  }
  return library().whole || refuse(f, int(ErrorKind::device),
                                   "pip install nvidia-nccl-cu13, or use device = \"cpu\"; rille doctor shows where "
                                   "Rille searches for libraries",
                                   "communicators on GPUs need the library NCCL (libnccl.so.2), which is not found");
}

bool good(int result, const char* doing, Failure& f) {
  return result == nccl::success || result == nccl::in_progress ||
         refuse(f, int(ErrorKind::network), "set NCCL_DEBUG=WARN in the environment to see more of NCCL's messages",
                "NCCL, %s: %s", doing, library().ncclGetErrorString(result));
}

int give(const Collective& c, nccl::Comm comm, CUstream stream) {
  const Library& l = library();
  const int type = nccl::types[c.dtype], reduction = nccl::reductions[c.reduce];
  switch (c.kind) {
    case Collective::all_reduce: return l.ncclAllReduce(c.in, c.out, c.count, type, reduction, comm, stream);
    case Collective::broadcast: return l.ncclBroadcast(c.in, c.out, c.count, type, c.peer, comm, stream);
    case Collective::all_gather: return l.ncclAllGather(c.in, c.out, c.count, type, comm, stream);
    case Collective::reduce_scatter: return l.ncclReduceScatter(c.in, c.out, c.count, type, reduction, comm, stream);
    case Collective::send: return l.ncclSend(c.in, c.count, type, c.peer, comm, stream);
    case Collective::receive: return l.ncclRecv(c.out, c.count, type, c.peer, comm, stream);
  }
  return 4;  // ncclInvalidArgument
}

}  // namespace

bool nccl_unique_id(char* bytes, Failure& f) {
  if (!found(f)) return false;
  if (!bytes) return true;
  nccl::UniqueId id;
  if (!good(library().ncclGetUniqueId(&id), "a name", f)) return false;
  std::memcpy(bytes, id.bytes, sizeof id.bytes);
  return true;
}

bool Ranks::join(const char* bytes, int rank, int world, Failure& f) {
  nccl::UniqueId id;
  std::memcpy(id.bytes, bytes, sizeof id.bytes);
  nccl::Config config;
  return found(f) &&
         good(library().ncclCommInitRankConfig(&comm, world, id, rank, &config), "joining the other ranks", f);
}

nccl::Comm Ranks::now(Failure& f) {
  const std::lock_guard lock(mutex);
  if (!comm) refuse(f, int(ErrorKind::network), "start all ranks again from the last checkpoint", "%s", why.c_str());
  return comm;
}

bool Ranks::run(Card& card, const Collective* calls, int count, Failure& f) {
  const auto mine = now(f);
  if (!mine) return false;
  const Library& l = library();
  if (!good(l.ncclGroupStart(), "beginning", f)) return false;
  bool all = true;
  for (int i = 0; all && i < count; ++i) all = good(give(calls[i], mine, card.stream()), "a call", f);
  Failure ignored;
  return good(l.ncclGroupEnd(), "a call", all ? f : ignored) && all;
}

bool Ranks::alive(Failure& f) {
  const std::lock_guard lock(mutex);  // without the lock give_up() could free the communicator meanwhile
  if (!comm)
    return refuse(f, int(ErrorKind::network), "start all ranks again from the last checkpoint", "%s", why.c_str());
  int error = nccl::success;
  if (!good(library().ncclCommGetAsyncError(comm, &error), "at work", f) || !good(error, "at work", f)) return false;
  f.code = error == nccl::in_progress ? nccl::in_progress : 0;
  return true;
}

void Ranks::give_up(const char* reason) {
  nccl::Comm ended = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (!comm) return;
    why = reason;
    ended = std::exchange(comm, nullptr);
  }
  library().ncclCommAbort(ended);
}

// ncclCommDestroy waits for the other ranks without a limit, so it is called only after ncclCommFinalize has finished.
void Ranks::leave() {
  const std::lock_guard lock(mutex);
  const auto mine = std::exchange(comm, nullptr);
  if (!mine) return;
  const Library& l = library();
  const auto end = std::chrono::steady_clock::now() + leave_max;
  int error = l.ncclCommFinalize(mine);
  if (error == nccl::success) error = nccl::in_progress;
  while (error == nccl::in_progress && std::chrono::steady_clock::now() < end) {
    if (l.ncclCommGetAsyncError(mine, &error) != nccl::success) error = nccl::internal_error;
    if (error == nccl::in_progress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (error == nccl::success) l.ncclCommDestroy(mine);
  else l.ncclCommAbort(mine);
}

}  // namespace rille::device::cuda
