-- User kernels that meet at barriers, in shared memory, by atomics and by warp shuffles: block reduction, tiled matrix
-- product, histogram, scan, stencil, types of its own; each beside the same by tensors or plain Lua. Where NVRTC is
-- found, each is also compiled for all GPUs that Rille knows, which needs none of them.
-- usage: rille run kernels.lua [--device cuda:0]
local rille = require "rille"

local args = rille.args { device = "cpu" }

local reduction = [==[
__global__ void reduction(int n, const float* x, float* sums) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0.0f;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
]==]
local product = [==[
__global__ void product(int n, const float* a, const float* b, float* c) {
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += 16) {
    ta[y][x] = a[row * n + tile + x];
    tb[y][x] = b[(tile + y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += ta[y][k] * tb[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
]==]
local histogram = [==[
__global__ void histogram(int n, const int* x, int* counts) {
  __shared__ int mine[32];
  if (threadIdx.x < 32) mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 32) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
]==]
local scan = [==[
__global__ void scan(const int* x, int* sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int value = x[i];
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += other;
  }
  sums[i] = value;
}
]==]
local stencil = [==[
__global__ void stencil(int n, float rate, const float* from, float* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) to[i] = from[i] + rate * (from[i - 1] - 2.0f * from[i] + from[i + 1]);
}
]==]
-- Types by other names, a structure and an enumeration by value, and constants beside words that look like them.
local named = [==[
typedef float real;
struct Line { real slope; int n; double at; };
enum Sign : int { plus, minus };
// once: __constant__ int shift[2];
__constant__ real unused, shift[2];
extern "C" __global__ void named(const Line by, const Sign sign, SCALE scale, real* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < by.n) y[i] = ((by.slope * i + by.at) * scale + shift[0] + shift[1]) * (sign == minus ? -1 : 1);
}
]==]
local line = "\0\0\0\64\232\3\0\0\0\0\0\0\0\0\240\63"     -- 2, 1000, 1
-- Its header is the toolkit's alone.
local grouped = [==[
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void grouped(const int* x, int* sums) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = x[i];
  for (int step = 16; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
  if (tile.thread_rank() == 0) sums[i / 32] = sum;
}
]==]

local architectures = { "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120" }

-- How many cubins the kernels make, or nil and why there is no compiler for them.
local function cubins(kernels)
  local count = 0
  for _, kernel in ipairs(kernels) do
    for _, architecture in ipairs(architectures) do
      local ok, made = pcall(kernel.cubin, kernel, architecture)
      if not ok and type(made) == "table" and made.kind == "device" then return nil, made.message end
      if not ok then error(("%s for %s: %s"):format(kernel.name, architecture, made.message or made)) end
      count = count + 1
    end
  end
  return count
end

local function near(what, got, want, bound)
  local off = ((got:to "f64" - want):abs():max() / want:abs():max()):item()
  if not (off <= bound) then error(("%s is off by %.3g, at most %g"):format(what, off, bound)) end
  return off
end

return rille.step("kernels", { args = args }, function()
  local cpu, dev = rille.device "cpu", rille.device(args.device)
  local function there(x) return dev == cpu and x or x:to(dev) end
  local function here(x) return dev == cpu and x or x:to(cpu) end
  local ok, reduce = pcall(dev.kernel, dev, reduction)
  if not ok then
    if type(reduce) == "table" and reduce.kind == "device" then return { not_run = reduce.message } end
    error(reduce)
  end
  cpu:seed(6)
  local worst = 0

  local tiles, counting, scanning, heat = dev:kernel(product), dev:kernel(histogram), dev:kernel(scan),
    dev:kernel(stencil)

  local n = 100000
  local blocks = math.ceil(n / 256)
  local x, sums = cpu:rand { n }, dev:zeros { blocks }
  reduce:launch({ grid = blocks, block = 256 }, n, there(x), sums)
  worst = math.max(worst, near("the block reduction", here(sums):sum(), x:to("f64"):sum(), 1e-5))

  local a, b, c = cpu:randn { 128, 128 }, cpu:randn { 128, 128 }, dev:zeros { 128, 128 }
  tiles:launch({ grid = { 8, 8 }, block = { 16, 16 } }, 128, there(a), there(b), c)
  worst = math.max(worst, near("the tiled product", here(c), a:to("f64"):matmul(b:to "f64"), 1e-5))

  local ids = cpu:randint { n, high = 32, dtype = "i32" }
  local counts = dev:zeros { 32, dtype = "i32" }
  counting:launch({ grid = 20, block = 128 }, n, there(ids), counts)
  local got, want = here(counts):totable(), {}
  for i = 1, 32 do want[i] = ids:eq(i - 1):to("i64"):sum():item() end
  for i = 1, 32 do
    if got[i] ~= want[i] then error(("the histogram counts %d of %d, not %d"):format(got[i], i - 1, want[i])) end
  end

  local scanned = dev:zeros { 1024, dtype = "i32" }
  local values = ids:narrow(1, 1, 1024):contiguous()
  scanning:launch({ grid = 4, block = 256 }, there(values), scanned)
  local difference = (here(scanned):to "i64" - values:to("i64"):reshape(32, 32):cumsum(2):reshape(1024)):abs():max()
  if difference:item() ~= 0 then error("the scan by shuffles is off by " .. difference:item()) end

  local from = cpu:randn { 4096 }
  local to = there(from:clone())
  heat:launch({ grid = 16, block = 256 }, 4096, 0.25, there(from), to)
  local wide = from:to "f64"
  local middle = wide:narrow(1, 2, 4094)
  local wanted = middle + (wide:narrow(1, 1, 4094) - middle * 2 + wide:narrow(1, 3, 4094)) * 0.25

  local names = dev:kernel(named, { defines = { SCALE = "real" }, constants = { shift = { 0.25, 0.5 } } })
  local lines = dev:zeros { 1024 }
  names:launch({ grid = 4, block = 256 }, line, "\1\0\0\0", 0.5, lines)
  local numbers = here(lines):totable()
  for i = 1, 1024 do
    local expected = i <= 1000 and -(i - 1 + 0.5 + 0.75) or 0
    if numbers[i] ~= expected then error(("the line is %g at %d, not %g"):format(numbers[i], i, expected)) end
  end
  local fits, misfit = pcall(names.launch, names, { grid = 4, block = 256 }, line, "\1\0\0\0", 0.5,
    dev:zeros { 1024, dtype = "f16" })
  if fits or not misfit.message:find("expected an f32 tensor", 1, true) then
    error("a float by another name takes f16: " .. tostring(not fits and misfit.message))
  end

  local there_is, groups = pcall(dev.kernel, dev, grouped)
  if there_is then
    local sum = dev:zeros { 32, dtype = "i32" }
    groups:launch({ grid = 4, block = 256 }, there(values), sum)
    if (here(sum):to "i64" - values:to("i64"):reshape(32, 32):sum(2)):abs():max():item() ~= 0 then
      error "the sums by cooperative groups are off"
    end
  elseif groups.code == "kernel_compile" and groups.message:find("open source file", 1, true) then
    print("no cooperative groups: " .. groups.message)
  else
    error(groups)
  end

  worst = math.max(worst, near("the stencil", here(to):narrow(1, 2, 4094), wanted, 1e-6))
  local figures = {
    { name = "kernels", value = 6, unit = "" },
    { name = "largest relative error", value = worst, unit = "" },
  }
  local made, why = cubins { reduce, tiles, counting, scanning, heat, names }
  if made then figures[3] = { name = "cubins for sm_75 to sm_120", value = made, unit = "" }
  else print("not compiled for GPUs: " .. why) end
  return { figures = figures }
end)
