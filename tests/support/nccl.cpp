// libnccl.so.2 for tests: ranks in one process, each on a GPU of the stand-in driver. A call reads its input when its
// stream reaches it; the stream continues once the streams of all ranks have reached the call, and then it writes. The
// calls of a group all read before one of them waits.
// Reductions support f32 and i32, in the order of the ranks; other types are only moved.
//
// As with NCCL's `blocking` = 0 nothing waits: a group of calls is submitted to its streams at the second query of
// its state; further calls before that are misuse.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "library.hpp"

namespace {

struct Call {
  int kind = 0;  // 0 all_reduce, 1 broadcast, 2 all_gather, 3 reduce_scatter, 4 send, 5 recv
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  int type = 0, reduction = 0, peer = 0;
};

std::size_t size_of(int type) {
  constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

// One call of all ranks, or of two. The inputs and the arrived ranks are guarded by the driver's lock.
struct Meeting {
  Meeting(int world, int ranks) : given(std::size_t(world)), wanted(ranks) {}
  std::vector<std::string> given;  // by rank
  int come = 0;
  const int wanted;
  std::atomic<bool> ended{false};  // a rank aborted
};

struct Group {
  std::mutex mutex;
  int world = 0, ranks = 0;
  std::map<std::string, std::shared_ptr<Meeting>> meetings;
  bool ended = false;
};

struct Comm {
  std::shared_ptr<Group> group;
  int rank = 0, number = 0;
  std::map<std::pair<int, int>, int> pairs;                                        // messages from one rank to another
  std::vector<std::pair<Call, void*>> late;                                        // and their streams
  std::shared_ptr<std::atomic<int>> open = std::make_shared<std::atomic<int>>(0);  // calls that have not run
  bool asked = false, finalized = false;
};

std::mutex groups_mutex;
std::atomic<int> begun{0}, destroyed{0}, aborted{0};
auto& groups = *new std::map<std::string, std::shared_ptr<Group>>;  // outlives the exit handlers
int next_id = 0;
thread_local std::vector<std::pair<Comm*, std::pair<Call, void*>>> queued;
thread_local int depth = 0;

template <class T>
T join(T a, T b, int reduction) {
  switch (reduction) {
    case 1: return a * b;
    case 2: return a > b ? a : b;
    case 3: return a < b ? a : b;
    default: return a + b;
  }
}

template <class T>
void fold(const Meeting& m, const Call& c, std::size_t first, int world) {
  auto* const out = static_cast<T*>(c.out);
  for (std::size_t i = 0; i < c.count; ++i) {
    T sum{};
    for (int r = 0; r < world; ++r) {
      const T x = reinterpret_cast<const T*>(m.given[std::size_t(r)].data())[first + i];
      sum = r ? join(sum, x, c.reduction) : x;
    }
    out[i] = c.reduction == 4 ? T(sum / T(world)) : sum;
  }
}

void finish(const Meeting& m, const Call& c, int rank, int world) {
  if (m.ended) return;
  const std::size_t bytes = c.count * size_of(c.type);
  auto* const out = static_cast<char*>(c.out);
  if (c.kind == 0 || c.kind == 3) {
    const std::size_t first = c.kind == 3 ? c.count * std::size_t(rank) : 0;
    if (c.type == 2) fold<int>(m, c, first, world);
    else fold<float>(m, c, first, world);
  } else if (c.kind == 1 || c.kind == 5) {
    std::memcpy(out, m.given[std::size_t(c.peer)].data(), bytes);
  } else if (c.kind == 2) {
    for (int r = 0; r < world; ++r) std::memcpy(out + bytes * std::size_t(r), m.given[std::size_t(r)].data(), bytes);
  }
}

std::string meeting_name(Comm& comm, const Call& c) {
  if (c.kind < 4) return "all " + std::to_string(comm.number++);
  const int from = c.kind == 4 ? comm.rank : c.peer, to = c.kind == 4 ? c.peer : comm.rank;
  return std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(comm.pairs[{from, to}]++);
}

// What a call does on its stream; under the driver's lock.
struct Parts {
  std::function<void()> contribute;
  std::function<bool()> come;
  std::function<void()> end;
};

Parts parts_of(Comm& comm, const Call& c) {
  Group& g = *comm.group;
  const int world = g.world, rank = comm.rank;
  std::shared_ptr<Meeting> m;
  {
    const std::lock_guard lock(g.mutex);
    auto& found = g.meetings[meeting_name(comm, c)];
    if (!found) found = std::make_shared<Meeting>(world, c.kind < 4 ? world : 2);
    m = found;
    if (g.ended) m->ended = true;
  }
  const std::size_t length = c.count * size_of(c.type) * std::size_t(c.kind == 3 ? world : 1);
  Parts parts;
  parts.contribute = [m, c, rank, length] {
    if (c.in) m->given[std::size_t(rank)].assign(static_cast<const char*>(c.in), length);
    ++m->come;
  };
  parts.come = [m] { return m->come == m->wanted || m->ended; };
  parts.end = [m, c, rank, world, open = comm.open] {
    finish(*m, c, rank, world);
    --*open;
  };
  ++*comm.open;
  return parts;
}

int give(Comm& comm, const std::vector<std::pair<Call, void*>>& group) {
  const auto gate = rille::test::library_gate();
  const auto call = rille::test::library_call();
  if (!gate || !call) return 3;
  std::vector<Parts> all;
  for (const auto& [c, stream] : group) all.push_back(parts_of(comm, c));
  int failed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) failed |= call(group[i].second, &all[i].contribute);
  for (std::size_t i = 0; i < all.size(); ++i) failed |= gate(group[i].second, &all[i].come);
  for (std::size_t i = 0; i < all.size(); ++i) failed |= call(group[i].second, &all[i].end);
  return failed ? 1 : 0;
}

constexpr int invalid_usage = 5, remote_error = 6, in_progress = 7;

bool all_joined(Group& g) {
  const std::lock_guard lock(g.mutex);
  return g.ranks == g.world;
}

int add(void* comm, const Call& c, void* stream) {
  if (!depth) return invalid_usage;
  queued.push_back({static_cast<Comm*>(comm), {c, stream}});
  return 0;
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) int

struct UniqueId {
  char bytes[128];
};

__attribute__((visibility("default"))) const char* ncclGetErrorString(int error) {
  return error == 3 ? "internal error of the stand-in" : "as the test asked";
}
API ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(groups_mutex);
  *id = {};
  std::memcpy(id->bytes, &++next_id, sizeof next_id);
  return 0;
}
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};
API ncclCommInitRankConfig(void** comm, int world, UniqueId id, int rank, Config* config) {
  if (config->size < sizeof(Config) || config->magic != 0xcafebeefu || config->blocking != 0) return invalid_usage;
  std::shared_ptr<Group> g;
  {
    const std::lock_guard lock(groups_mutex);
    auto& found = groups[std::string(id.bytes, sizeof id.bytes)];
    if (!found) found = std::make_shared<Group>();
    g = found;
  }
  const std::lock_guard lock(g->mutex);
  g->world = world;
  ++g->ranks;
  auto* const made = new Comm;
  made->group = g;
  made->rank = rank;
  *comm = made;
  ++begun;
  return in_progress;
}
API ncclCommFinalize(void* comm) {
  auto& c = *static_cast<Comm*>(comm);
  if (!c.late.empty() || !all_joined(*c.group)) return invalid_usage;
  c.finalized = true;
  return in_progress;
}
API ncclCommDestroy(void* comm) {
  if (!static_cast<Comm*>(comm)->finalized) return invalid_usage;  // the real NCCL may wait for ever
  delete static_cast<Comm*>(comm);
  ++destroyed;
  return 0;
}
API ncclCommAbort(void* comm) {
  {
    Group& g = *static_cast<Comm*>(comm)->group;
    const std::lock_guard lock(g.mutex);
    g.ended = true;
    for (auto& [name, m] : g.meetings) m->ended = true;
  }
  delete static_cast<Comm*>(comm);
  ++aborted;
  return 0;
}
API ncclCommGetAsyncError(void* comm, int* error) {
  auto& c = *static_cast<Comm*>(comm);
  *error = 0;
  if (std::getenv("RILLE_TEST_NCCL_FAILS")) *error = remote_error;
  else if (!all_joined(*c.group) || (c.finalized && *c.open)) *error = in_progress;
  else if (!c.late.empty() && !std::exchange(c.asked, true)) *error = in_progress;
  else *error = give(c, std::exchange(c.late, {}));
  return 0;
}
API standin_nccl_ids() {
  const std::lock_guard lock(groups_mutex);
  return int(next_id);
}
API standin_nccl_counts(int* begun_now, int* destroyed_now, int* aborted_now) {
  *begun_now = begun;
  *destroyed_now = destroyed;
  *aborted_now = aborted;
  return 0;
}
API ncclGroupStart() {
  ++depth;
  return 0;
}
API ncclGroupEnd() {
  if (--depth) return 0;
  auto calls = std::exchange(queued, {});
  for (const auto& [comm, what] : calls)
    if (comm->finalized || !comm->late.empty() || !all_joined(*comm->group)) return invalid_usage;
  for (auto& [comm, what] : calls) {
    comm->asked = false;
    comm->late.push_back(std::move(what));
  }
  return in_progress;
}
API ncclAllReduce(const void* in, void* out, std::size_t n, int type, int reduction, void* comm, void* stream) {
  return add(comm, {0, in, out, n, type, reduction, 0}, stream);
}
API ncclBroadcast(const void* in, void* out, std::size_t n, int type, int root, void* comm, void* stream) {
  return add(comm, {1, in, out, n, type, 0, root}, stream);
}
API ncclAllGather(const void* in, void* out, std::size_t n, int type, void* comm, void* stream) {
  return add(comm, {2, in, out, n, type, 0, 0}, stream);
}
API ncclReduceScatter(const void* in, void* out, std::size_t n, int type, int reduction, void* comm, void* stream) {
  return add(comm, {3, in, out, n, type, reduction, 0}, stream);
}
API ncclSend(const void* in, std::size_t n, int type, int peer, void* comm, void* stream) {
  return add(comm, {4, in, nullptr, n, type, 0, peer}, stream);
}
API ncclRecv(void* out, std::size_t n, int type, int peer, void* comm, void* stream) {
  return add(comm, {5, nullptr, out, n, type, 0, peer}, stream);
}

}  // extern "C"
