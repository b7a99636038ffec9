// Users' kernels on the stand-in card: their constants, instances of templates, and cooperative launches.
#include <cstring>

#include "streams.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

constexpr const char* weighted = R"cu(
__constant__ float weight[2];
__global__ void weighted(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = weight[0] * x[i] + weight[1];
}
)cu";

std::shared_ptr<device::Kernel> weighted_by(std::vector<double> weights) {
  auto options = for_the_card();
  options.constants = {{"weight", std::move(weights)}};
  return get(device::Kernel::compile(weighted, options));
}

LaunchValue whole_number(int v) {
  LaunchValue out;
  device::put_number(rille_abi::i32, out.value, v);
  return out;
}
LaunchValue pointer(const Tensor& t) {
  LaunchValue out;
  out.tensor = t;
  return out;
}

void give(Graph& g, const std::shared_ptr<device::Kernel>& kernel, const StreamPtr& stream, device::LaunchShape shape,
          const std::vector<LaunchValue>& values) {
  auto what = std::make_shared<Launching>();
  what->kernel = kernel;
  what->shape = shape;
  what->stream = stream;
  get(launch(g, what, values));
}

device::LaunchShape of_blocks(unsigned blocks, unsigned threads) {
  device::LaunchShape out;
  out.grid[0] = blocks;
  out.block[0] = threads;
  return out;
}

// The first launches of two kernels of one source, each with its own constants. How many seeds give something else.
int wrong_constants(Options o, int seeds, bool on_stream) {
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto g = standin.graph();
    const StreamPtr s = on_stream ? get(make_stream(*g)) : nullptr;
    const Tensor x = whole(*g, 2), y = whole(*g, 0), z = whole(*g, 0);
    const auto first = weighted_by({3, 0.5}), second = weighted_by({1, -1});
    give(*g, first, s, of_blocks(3, 32), {whole_number(length), pointer(x), pointer(y)});
    give(*g, second, s, of_blocks(3, 32), {whole_number(length), pointer(x), pointer(z)});
    wrong += all({y, z}) !=
             std::vector<std::vector<double>>{std::vector<double>(length, 6.5), std::vector<double>(length, 1)};
  }
  return wrong;
}

TEST_CASE("a kernel's constants are there at its first launch", "[cuda]") {
  CHECK(wrong_constants({}, 20, false) == 0);
  CHECK(wrong_constants({}, 20, true) == 0);
}

TEST_CASE("a launch that comes before its kernel's constants is seen", "[cuda]") {
  Options o;
  o.no_stream_syncs = true;  // the wait when they are set
  CHECK(wrong_constants(o, 20, true) > 0);
  o.no_event_waits = 1u << 0;  // and that of the device's own order
  CHECK(wrong_constants(o, 20, false) > 0);
}

TEST_CASE("constants of another size are refused, and the kernel is named", "[cuda]") {
  for (const auto& weights : {std::vector<double>{1}, std::vector<double>{1, 2, 3}}) {
    auto options = for_the_card();
    options.constants = {{"weight", weights}};
    const auto refused = device::Kernel::compile(weighted, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("kernel weighted: constant weight: " + std::to_string(weights.size()) +
                                       " numbers for 2") != std::string::npos);
  }
}

TEST_CASE("a structure goes by value to an extern C kernel of types by other names", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto kernel = get(device::Kernel::compile(R"cu(
typedef float real;
struct Line { real slope; int n; double at; };
extern "C" __global__ void line(const Line by, real* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < by.n) y[i] = by.slope * i + by.at;
}
)cu",
                                                  for_the_card()));
  CHECK(kernel->signature() == "line(a type of its own by, float* y)");
  REQUIRE(kernel->parameters()[0].size == 16);
  const struct {
    float slope;
    int n;
    double at;
  } by{2, length, 1};
  LaunchValue bytes;
  std::memcpy(bytes.value, &by, sizeof by);
  const Tensor y = whole(*g, 0);
  give(*g, kernel, nullptr, of_blocks(3, 32), {bytes, pointer(y)});
  std::vector<double> wanted(length);
  for (int i = 0; i < length; ++i) wanted[std::size_t(i)] = 2 * i + 1;
  CHECK(numbers(y) == wanted);
}

TEST_CASE("instances of a template are launched by their name expressions", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto source = R"cu(
template <typename T, int N> __global__ void grow(int n, const T* by, T* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * N + by[i];
}
)cu";
  for (const bool wide : {false, true}) {
    auto options = for_the_card();
    options.name = wide ? "grow<double, 2>" : "grow<float, 4>";
    const auto kernel = get(device::Kernel::compile(source, options));
    CHECK(kernel->built().lowered_name.starts_with(wide ? "_Z4growIdLi2EE" : "_Z4growIfLi4EE"));
    CHECK(kernel->signature() == (wide ? "grow<double, 2>(int n, const double* by, double* y)"
                                       : "grow<float, 4>(int n, const float* by, float* y)"));
    const DType type = wide ? DType::f64 : DType::f32;
    const Tensor by = get(full(*g, dims({length}), 1, type)), y = get(full(*g, dims({length}), 5, type));
    give(*g, kernel, nullptr, of_blocks(3, 32), {whole_number(length), pointer(by), pointer(y)});
    CHECK(numbers(y) == std::vector<double>(length, wide ? 11 : 21));
  }
}

TEST_CASE("a cooperative launch synchronises its grid, and one that does not fit is refused", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto kernel = get(device::Kernel::compile(R"cu(
#include <cooperative_groups.h>
__global__ void count(int* blocks, int* seen) {
  if (threadIdx.x == 0) atomicAdd(blocks, 1);
  cooperative_groups::this_grid().sync();
  seen[blockIdx.x * blockDim.x + threadIdx.x] = blocks[0];
}
)cu",
                                                  for_the_card()));
  const auto counted = [&](unsigned blocks) {
    const Tensor sum = get(zeros(*g, dims({1}), DType::i32)), seen = get(zeros(*g, dims({65 * 32}), DType::i32));
    auto shape = of_blocks(blocks, 32);
    shape.cooperative = true;
    give(*g, kernel, nullptr, shape, {pointer(sum), pointer(seen)});
    return g->read_blocking(seen);
  };
  const auto fits = get(counted(64));  // 32 blocks on each of two multiprocessors
  CHECK((fits.number(0) == 64 && fits.number(64 * 32 - 1) == 64 && fits.number(64 * 32) == 0));
  const auto refused = counted(65);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::device);
  CHECK(refused.error().message.find("kernel count: cuda:0: launching a kernel: the CUDA driver says "
                                     "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)") == 0);
  CHECK(refused.error().hint.find("all blocks of a cooperative launch must run at once: use fewer blocks") == 0);
  CHECK(get(counted(2)).number(0) == 2);  // the card is not lost
}

// The driver's own limit of 48 KB is of static and dynamic memory together.
TEST_CASE("a kernel with arrays of its own gets dynamic shared memory up to the card's limit", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto source = R"cu(
__global__ void last(int floats, float* y) {
  extern __shared__ float room[];
  room[floats - 1] = 3;
  y[0] = room[floats - 1];
}
)cu";
  const auto told = [&](int own_kb, int dynamic_kb) {
    ::setenv("RILLE_STANDIN_SHARED", std::to_string(own_kb << 10).c_str(), 1);
    const auto kernel = get(device::Kernel::compile(source, for_the_card()));
    const Tensor y = get(zeros(*g, dims({1})));
    auto shape = of_blocks(1, 1);
    shape.shared_bytes = unsigned(dynamic_kb) << 10;
    give(*g, kernel, nullptr, shape, {whole_number(dynamic_kb * 256), pointer(y)});
    const auto read = g->read_blocking(y);
    ::unsetenv("RILLE_STANDIN_SHARED");
    return read ? std::to_string(int(read->number(0))) : read.error().message;
  };
  CHECK(told(0, 48) == "3");
  CHECK(told(0, 100) == "3");
  CHECK(told(16, 32) == "3");
  CHECK(told(16, 40) == "3");
  CHECK(told(48, 1) == "3");
  CHECK(told(27, 200) == "3");
  CHECK(told(28, 200).find("kernel last: cuda:0: 204800 bytes of dynamic shared memory and 28672 static bytes of the "
                           "kernel: a block has at most 232448") == 0);
}

TEST_CASE("a block has as many threads as the kernel's registers allow, and a good number is suggested") {
  const Standin standin;
  const auto g = standin.graph();
  const auto kernel = get(device::Kernel::compile("__global__ void one(float* y) { y[0] = 1; }", for_the_card()));
  device::Executor& executor = *g->device()->executor();
  CHECK(get(executor.suggested_block(*kernel)) == 768);
  ::setenv("RILLE_STANDIN_THREADS", "64", 1);
  const auto small =
      get(device::Kernel::compile("__global__ void __launch_bounds__(64) two(float* y) { y[0] = 2; }", for_the_card()));
  CHECK(get(executor.suggested_block(*small)) == 64);
  const Tensor y = get(zeros(*g, dims({1})));
  give(*g, small, nullptr, of_blocks(1, 128), {pointer(y)});
  const auto read = g->read_blocking(y);
  ::unsetenv("RILLE_STANDIN_THREADS");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().kind == ErrorKind::invalid);
  CHECK(read.error().message.find("a block of 128 threads: this kernel takes at most 64") != std::string::npos);
  CHECK(read.error().hint.find("suggest_block") != std::string::npos);
}

}  // namespace
}  // namespace rille::tensor
