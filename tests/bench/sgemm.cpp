// Rille inside a program that also calls oneDNN by itself, for a script that measures products through Lua beside
// oneDNN's: on the same thread with the same OpenMP team, by turns. Modules of the script: bench.prepare(m, n, k)
// chooses the fastest of oneDNN's ways and plain layouts, bench.alone() gives the seconds of one call by it.
// usage: bench_sgemm SCRIPT ARGUMENTS, where these are a JSON object; prints the script's result
#include <cstdio>
#include <future>
#include <memory>

#include "bindings/c/rille.h"
#include "runtime/compute/device/lane.hpp"
#include "tests/bench/products.hpp"

namespace {

struct Alone {
  std::unique_ptr<bench::Product> product;
  bench::Product::Fastest fastest;
};

// On the lane of the CPU: the script holds its device.
void on_lane(const std::function<void()>& work) {
  std::promise<void> done;
  rille::device::Lane::shared()->post([&](rille::kernels::LaneState&) {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void prepare(rille_call* call, void* payload) {
  auto& alone = *static_cast<Alone*>(payload);
  long size[3];
  for (std::size_t i = 0; i < 3; ++i) {
    int64_t given = 0;
    if (rille_error* e = rille_call_integer(call, i, &given)) return rille_call_fail(call, e);
    size[i] = long(given);
  }
  on_lane([&] {
    alone.product = std::make_unique<bench::Product>(size[0], size[1], size[2], false);
    alone.fastest = alone.product->fastest(15);
  });
  rille_call_return_number(call, alone.fastest.seconds);
}

void run_alone(rille_call* call, void* payload) {
  double seconds = 0;
  on_lane([&] { seconds = bench::seconds_of(static_cast<Alone*>(payload)->fastest.run); });
  rille_call_return_number(call, seconds);
}

void check(rille_error* e) {
  if (!e) return;
  std::fprintf(stderr, "bench_sgemm: %s\n", rille_error_to_json(e));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_sgemm SCRIPT ARGUMENTS\n");
    return 2;
  }
  Alone alone;
  rille_function_spec functions[] = {{sizeof *functions, "prepare", RILLE_VOLATILE, prepare, &alone},
                                     {sizeof *functions, "alone", RILLE_VOLATILE, run_alone, &alone}};
  rille_runtime* runtime = nullptr;
  check(rille_create(nullptr, &runtime));
  check(rille_register_module(runtime, "bench", functions, 2));
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.args_json = argv[2];
  options.grants = R"({"all": true})";
  rille_run* run = nullptr;
  check(rille_run_from_file(runtime, argv[1], &options, &run));
  check(rille_run_start(run));
  check(rille_run_wait(run, -1));
  const char* result = rille_run_result(run, nullptr);
  if (!result) {
    std::fprintf(stderr, "bench_sgemm: %s\n", rille_error_to_json(rille_run_error(run)));
    return 1;
  }
  std::printf("%s\n", result);
  rille_run_free(run);
  rille_destroy(runtime);
  return 0;
}
