// all_reduce on ranks that are processes of this machine: the median of each size in microseconds, a line of JSON.
// usage: bench_collective [WORLD] [tcp]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "runtime/compute/collective/communicator.hpp"

using namespace rille;
using namespace rille::collective;

namespace {

int rank_main(int rank, int world, const std::string& address, bool shared) {
  Options o;
  o.rank = rank;
  o.world = world;
  o.address = address;
  o.shared_memory = shared;
  auto made = Communicator::create(o, std::make_shared<Stop>());
  if (!made) return std::fprintf(stderr, "%s\n", made.error().summary().c_str()), 1;
  if (rank == 0) std::printf("{\"world\": %d, \"transport\": \"%s\"", world, (*made)->transport().c_str());
  for (const auto& [name, bytes, times] : {std::tuple{"4B", 4u, 3000}, std::tuple{"4KB", 4u << 10, 3000},
                                           std::tuple{"1MB", 1u << 20, 400}, std::tuple{"64MB", 64u << 20, 15}}) {
    std::vector<float> v(bytes / 4, 0);
    Operation op;
    op.kind = Kind::all_reduce;
    op.count = std::int64_t(v.size());
    op.shape.push(op.count);
    std::vector<double> us;
    for (int i = -times / 5 - 2; i < times; ++i) {
      if (!(*made)->run({}, {})) return 1;
      const auto since = std::chrono::steady_clock::now();
      if (!(*made)->run(op, {{v.data(), v.data(), op.count}})) return 1;
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - since;
      if (i >= 0) us.push_back(took.count());
    }
    std::nth_element(us.begin(), us.begin() + long(us.size() / 2), us.end());
    if (rank == 0) std::printf(", \"%s\": %.1f", name, us[us.size() / 2]);
  }
  if (rank == 0) std::printf("}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int world = argc > 1 ? std::atoi(argv[1]) : 2;
  const bool shared = argc < 3 || std::strcmp(argv[2], "tcp") != 0;
  std::string address;
  {
    auto free = listen_at({"127.0.0.1", 0});
    if (!free) return 1;
    address = to_string(local_address(free->get()));
  }
  for (int r = 1; r < world; ++r)
    if (::fork() == 0) ::_exit(rank_main(r, world, address, shared));
  int failed = rank_main(0, world, address, shared);
  for (int r = 1, status = 0; r < world; ++r) {
    ::wait(&status);
    failed = failed || status;
  }
  return failed;
}
