// libcufft.so.12 for tests: sums by definition, in double, run on the stand-in driver's stream. Layouts are the
// library's: element i of transform b is at b * distance + i * stride.
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "library.hpp"

namespace {

struct Plan {
  long long n = 0, stride = 0, distance = 0, batch = 0;
  int type = 0, automatic = 1;
  void *stream = nullptr, *work = nullptr;
  std::size_t work_bytes = 0;
};

// Outlives the exit handlers; a later call is the caller's fault and would crash the real library.
struct Plans {
  std::mutex mutex;
  std::map<int, Plan> all;
  int next = 0;
};
Plans& plans = *new Plans;
std::atomic<bool> gone{false};
const struct AtExit {
  ~AtExit() { gone = true; }
} at_exit;

std::unique_lock<std::mutex> entered() {
  if (gone) {
    std::fputs("the stand-in of cuFFT was called behind exit()\n", stderr);
    std::abort();
  }
  return std::unique_lock(plans.mutex);
}

template <class T>
int execute(int handle, void* in, void* out, int direction, int type) {
  auto lock = entered();
  const auto found = plans.all.find(handle);
  if (found == plans.all.end() || found->second.type != type || in != out || !found->second.work) return 1;
  const Plan p = found->second;
  lock.unlock();
  const std::function<void()> run = [p, out, direction] {
    std::memset(p.work, 0xff, p.work_bytes);  // as the library may: the workspace belongs to the operation
    auto* const data = static_cast<std::complex<T>*>(out);
    std::vector<std::complex<double>> row(std::size_t(p.n)), sums(std::size_t(p.n));
    for (long long b = 0; b < p.batch; ++b) {
      for (long long i = 0; i < p.n; ++i) row[std::size_t(i)] = data[b * p.distance + i * p.stride];
      for (long long k = 0; k < p.n; ++k) {
        std::complex<double> sum = 0;
        for (long long i = 0; i < p.n; ++i)
          sum += row[std::size_t(i)] * std::polar(1.0, direction * 2 * M_PI * double(i * k % p.n) / double(p.n));
        sums[std::size_t(k)] = sum;
      }
      for (long long i = 0; i < p.n; ++i) data[b * p.distance + i * p.stride] = std::complex<T>(sums[std::size_t(i)]);
    }
  };
  return rille::test::library_call()(p.stream, &run);
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) int

API cufftCreate(int* plan) {
  if (!rille::test::library_call()) return 5;  // CUFFT_INTERNAL_ERROR
  const auto lock = entered();
  plans.all[*plan = plans.next++] = {};
  return 0;
}
API cufftDestroy(int plan) {
  const auto lock = entered();
  return plans.all.erase(plan) ? 0 : 1;
}
API cufftSetAutoAllocation(int plan, int automatic) {
  const auto lock = entered();
  plans.all[plan].automatic = automatic;
  return 0;
}
API cufftMakePlanMany64(int plan, int rank, long long* n, long long* in_embed, long long in_stride,
                        long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
                        int type, long long batch, std::size_t* work_bytes) {
  const auto lock = entered();
  auto& p = plans.all[plan];
  if (rank != 1 || !in_embed || !out_embed || *in_embed != *n || *out_embed != *n || in_stride != out_stride ||
      in_distance != out_distance || p.automatic)
    return 4;  // CUFFT_INVALID_VALUE
  p = {*n, in_stride, in_distance, batch, type, 0, nullptr, nullptr, std::size_t(1) << 12};
  *work_bytes = p.work_bytes;
  return 0;
}
API cufftSetStream(int plan, void* stream) {
  const auto lock = entered();
  plans.all[plan].stream = stream;
  return 0;
}
API cufftSetWorkArea(int plan, void* work) {
  const auto lock = entered();
  plans.all[plan].work = work;
  return 0;
}
API cufftExecC2C(int plan, void* in, void* out, int direction) {
  return execute<float>(plan, in, out, direction, 0x29);
}
API cufftExecZ2Z(int plan, void* in, void* out, int direction) {
  return execute<double>(plan, in, out, direction, 0x69);
}

}  // extern "C"
