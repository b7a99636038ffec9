-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

local saxpy = dev:kernel [[
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
]]

tap.test("a kernel says what it is", function()
  tap.equal(saxpy.name, "saxpy")
  tap.equal(saxpy.signature, "saxpy(int n, float a, const float* x, float* y)")
  tap.equal(tostring(saxpy), "Kernel saxpy(int n, float a, const float* x, float* y) cpu")
  tap.equal(saxpy.checked, false)
  tap.ok(saxpy:suggest_block() >= 32)
  tap.raises("invalid", "did you mean 'launch'", function() return saxpy:lanch() end)
end)

tap.test("a launch is an operation in its place in the program", function()
  local x, y = dev:arange { 1000, dtype = "f32" }, dev:ones { 1000 }
  local before = y:clone()
  saxpy:launch({ grid = 4, block = 256 }, 1000, 2, x, y)
  local after = y + 0
  y:fill_(7)
  tap.equal(before:sum():item(), 1000)
  tap.equal(after:sum():item(), 999000 + 1000)
  tap.equal(y:sum():item(), 7000)
end)

tap.test("a bound kernel is a function", function()
  local x, y = dev:ones { 100 }, dev:zeros { 100 }
  local go = saxpy:bind { grid = 1, block = 128 }
  for _ = 1, 200 do go(100, 0.5, x, y) end
  tap.equal(y:sum():item(), 10000)
end)

tap.test("the tensors it writes live until it has run, even if freed before", function()
  local k = dev:kernel "__global__ void k(int* at, float* y) { y[at[0]] = 1; at[0] = 0; }"
  local y = dev:zeros { 4 }
  for i = 0, 3 do k:launch({ grid = 1, block = 1 }, dev:full { 1, value = i, dtype = "i32" }, y) end
  collectgarbage()
  tap.equal(y:totable(), { 1, 1, 1, 1 })
end)

tap.test("templates, defines, constants, options and files", function()
  local source = [[
    __constant__ float weight[2];
    template <typename T, int N> __global__ void k(T* y) { y[threadIdx.x] = N * FACTOR + weight[1] + EXTRA; }
  ]]
  local k = dev:kernel(source, { name = "k", template = { "double", 3 }, defines = { FACTOR = 2, EXTRA = "(T)1" },
    constants = { weight = { 5, 0.5 } }, options = { "-DUNUSED" } })
  local y = dev:zeros { 2, dtype = "f64" }
  k:launch({ grid = 1, block = 2 }, y)
  tap.equal(y:totable(), { 7.5, 7.5 })
  tap.equal(k.name, "k<double, 3>")
  local path = os.tmpname()
  local file = io.open(path, "w")
  file:write("__global__ void a(int* x) { x[0] = 1; }\n__global__ void b(int* x) { x[0] = 2; }\n")
  file:close()
  local x = dev:zeros { 1, dtype = "i32" }
  dev:kernel_file(path, { name = "b" }):launch({ grid = 1, block = 1 }, x)
  tap.equal(x:item(), 2)
  dev:kernel { file = path, name = "a" }:launch({ grid = 1, block = 1 }, x)
  tap.equal(x:item(), 1)
  os.remove(path)
  tap.raises("io", "cannot open", function() return dev:kernel_file("/nowhere/x.cu") end)
  tap.raises("invalid", "2 numbers for 3", function()
    return dev:kernel("__constant__ int c[3];\n__global__ void k() {}", { constants = { c = { 1, 2 } } })
  end)
  tap.raises("invalid", "did you mean 'checked'", function() return dev:kernel("", { chekced = true }) end)
  tap.raises("invalid", "neither a source nor a file is given", function() return dev:kernel { name = "x" } end)
end)

tap.test("an error without a line is shown as the compiler wrote it", function()
  local function refused(text, source, options)
    local ok, e = pcall(dev.kernel, dev, source, options)
    tap.ok(not ok and e.code == "kernel_compile" and tostring(e):find(text, 1, true), tostring(e))
  end
  refused("the source has no __constant__ wieght; did you mean 'weight'?", "__constant__ float weight[2];\n" ..
    "__global__ void k(float* x) { x[0] = weight[0]; }", { constants = { wieght = { 1 } } })
  refused("kernel k: 'flaot' was not declared in this scope; did you mean 'float'?",
    "__global__ void k(flaot* x) { x[0] = 1; }")
  refused("kernel source:2: kernel k: thrust/sort.h: No such file", "\n#include <thrust/sort.h>\n" ..
    "__global__ void k(float* x) { x[0] = 1; }")
  local folder = os.tmpname()
  os.remove(folder)
  tap.equal(os.execute("mkdir " .. folder), 0)
  local header = assert(io.open(folder .. "/curand_other.h", "w"))
  header:write("inline int a() { return nothing; }\ninline int b() { return nowhere; }\n")
  header:close()
  local ok, e = pcall(dev.kernel, dev, "\n#include <curand_other.h>\n__global__ void k(float* x) { x[0] = a(); }",
    { options = { "-I" .. folder } })
  os.execute("rm -r " .. folder)
  tap.ok(not ok)
  tap.ok(e.message:find("kernel k: the header curand_other.h does not compile here, in 2 places", 1, true), e.message)
  tap.ok(e.hint:find("dev:rand{n}", 1, true) and e.hint:find("nothing", 1, true))
  tap.ok(not e.hint:find("nowhere", 1, true))
  refused("several functions have that name", "__global__ void k(float* x) {}\n__global__ void k(double* x) {}")
  refused("kernel source:2: kernel k: a { in the kernel is not closed",
    "__device__ int n;\n" .. "__global__ void k(float* x) {\n" .. "  if (x[0] > 0) {\n    x[0] = 1;\n  }\n")
  refused("f(float) is declared, but defined nowhere",
    "__device__ float f(float);\n__global__ void k(float* x) { x[0] = f(1); }")
  local source = "namespace a { namespace { template <class T> __global__ void k(T* x, int n) { x[0] = n; } } }"
  for _, name in ipairs { "k<float>", "a::k<float>" } do
    local x, k = dev:zeros { 1 }, dev:kernel(source, { name = name })
    k:launch({ grid = 1, block = 1 }, x, 7)
    tap.equal({ k.name, x:item() }, { "a::k<float>", 7 })
  end
  tap.equal(dev:kernel("namespace b::c {\n__global__ void k(float* x) {} }").signature, "b::c::k(float* x)")
end)

tap.test("a source may have types of its own by names that the shim has", function()
  local k = dev:kernel [[
    typedef long long int64_t;
    typedef unsigned long long uint64_t;
    __global__ void k(int64_t* x, uint64_t n) { x[threadIdx.x] += n + (sizeof(clock_t) > 0) + (jnf(0, 0.f) == 1); }
  ]]
  local x = dev:ones { 2, dtype = "i64" }
  k:launch({ grid = 1, block = 2 }, x, 40)
  tap.equal(x:totable(), { 43, 43 })
end)

tap.test("a header beside the source: what changes in it is compiled anew, and it may have a barrier", function()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder .. "/more") == 0)
  local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  write("outer.h", '#pragma once\n# include "more/inner.h"\n')
  write("k.cu", '#include "outer.h"\n__global__ void k(int* x) { x[threadIdx.x] = value(int(threadIdx.x)); }\n')
  local function told(value)
    write("more/inner.h", "__device__ int value(int i) { __shared__ int seen[2]; seen[i] = i * " .. value ..
      "; __syncthreads(); return seen[1 - i]; }\n")
    local k = dev:kernel { file = folder .. "/k.cu" }
    local x = dev:zeros { 2, dtype = "i32" }
    k:launch({ grid = 1, block = 2 }, x)
    return x:totable()[1], k.cached
  end
  for _, expected in ipairs { { 3, false }, { 3, true }, { 4, false }, { 3, true } } do
    local value, cached = told(expected[1])
    tap.equal(value, expected[1])
    tap.equal(cached, expected[2])
  end
  local k = dev:kernel('#include <outer.h>\n__global__ void k(int* x) { x[0] = 1; }', { options = { "-I" .. folder } })
  tap.equal(k.name, "k")
  os.execute("rm -r " .. folder)
end)

tap.test("arguments of the wrong kind are named with what is expected", function()
  local x, y, shape = dev:ones { 8 }, dev:ones { 8 }, { grid = 1, block = 8 }
  local function wrong(text, ...)
    local args = { ... }
    tap.raises("invalid", text, function() saxpy:launch(shape, unpack(args, 1, 4)) end)
  end
  tap.raises("invalid", "2 arguments, expected 4: x is missing", function() saxpy:launch(shape, 8, 1) end)
  tap.raises("invalid", "5 arguments, expected 4", function() saxpy:launch(shape, 8, 1, x, y, y) end)
  wrong("n is int: expected a number, got a tensor f32[8]", x, 1, x, y)
  wrong("n is int: expected a number of that type, got 1.5", 1.5, 1, x, y)
  wrong("n is int: expected a number of that type", 2 ^ 40, 1, x, y)
  wrong('a is float: expected a number, got "a"', 8, "a", x, y)
  wrong("x is const float*: expected an f32 tensor, got i64[8]", 8, 1, dev:arange { 8 }, y)
  wrong("y is float*: expected a tensor or nil, got 3", 8, 1, x, 3)
  wrong("x is const float*: expected a contiguous tensor, got f32[2, 2]", 8, 1, dev:ones { 2, 2 }:transpose(), y)
  tap.raises("invalid", "kernel_test.lua:", function() saxpy:launch(shape, 8, 1, x, 3) end)
  local leaf = dev:ones { 8, requires_grad = true }
  tap.raises("state", "requires grad", function() saxpy:launch(shape, 8, 1, x, leaf) end)
  y:free()
  tap.raises("state", "y: the tensor f32", function() saxpy:launch(shape, 8, 1, x, y) end)
end)

tap.test("shapes of a launch are checked", function()
  local function wrong(text, shape)
    tap.raises("invalid", text, function() saxpy:bind(shape) end)
  end
  wrong("grid is missing", { block = 1 })
  wrong("block is missing", { grid = 1 })
  wrong("grid = 0: expected whole numbers from 1 on", { grid = 0, block = 1 })
  wrong("at most 1024", { grid = 1, block = { 32, 64 } })
  wrong("a grid of 1 x 70000 x 1 blocks; at most 65535 in y and z", { grid = { 1, 70000 }, block = 1 })
  wrong("at most 64 in z", { grid = 1, block = { 1, 1, 65 } })
  wrong("grid has 4 numbers", { grid = { 1, 1, 1, 1 }, block = 1 })
  wrong("did you mean 'grid'", { gird = 1, block = 1 })
  wrong("expected Stream", { grid = 1, block = 1, stream = 1 })
  wrong("shared memory; at most", { grid = 1, block = 1, shared = "1MB" })
end)

tap.test("half types, vectors by value, bool and nil", function()
  local k = dev:kernel [[
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void k(float4 v, bool twice, __half s, const __half* h, __nv_bfloat16* b, const float* none,
                      float2* out) {
      int i = threadIdx.x;
      b[i] = __float2bfloat16((float)h[i] * (twice ? 2.0f : 1.0f) + (float)s);
      out[i] = make_float2(v.x + v.y, none ? 1.0f : v.z * v.w);
    }
  ]]
  local h, b = dev:tensor({ 1, 2 }, { dtype = "f16" }), dev:zeros { 2, dtype = "bf16" }
  local out = dev:zeros { 2, 2 }
  k:launch({ grid = 1, block = 2 }, { 1, 2, 3, 4 }, true, 0.5, h, b, nil, out)
  tap.equal(b:totable(), { 2.5, 4.5 })
  tap.equal(out:totable(), { { 3, 12 }, { 3, 12 } })
  tap.raises("invalid", "a list of 4 numbers", function()
    k:launch({ grid = 1, block = 2 }, { 1, 2 }, true, 0.5, h, b, nil, out)
  end)
  tap.raises("invalid", "a multiple of 2 elements", function()
    k:launch({ grid = 1, block = 1 }, { 1, 2, 3, 4 }, true, 0.5, h, b, nil, dev:zeros { 3 })
  end)
end)

tap.test("a compile error names the line of this file", function()
  local err = tap.raises("invalid", "kernel k: 'nothing' was not declared", function()
    return dev:kernel [[
      __global__ void k(float* x) {
        x[0] = nothing;  // the line
      }
    ]]
  end)
  local line = err.message:match("kernel_test.lua:(%d+):")
  local _, here = pcall(function() error("here") end)
  tap.equal(tonumber(line), tonumber(here:match(":(%d+):")) - 5)
  tap.equal(err.code, "kernel_compile")
  tap.raises("invalid", "kernel source:2: kernel k:", function()
    return dev:kernel("__global__ void k() {\n" .. ("no" .. "thing") .. ";}")
  end)
end)

tap.test("checked mode tells index, thread, line and launch at the next read", function()
  local k = dev:kernel([[
    __global__ void shift(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x + 1]; }
  ]], { checked = true })
  local x, y = dev:ones { 8 }, dev:zeros { 8 }
  tap.equal(k.checked, true)
  k:launch({ grid = 1, block = 8 }, x, y)
  local err = tap.raises("device", "reads x[8], which has 8 elements", function() return y:totable() end)
  tap.ok(err.message:find("kernel_test.lua:%d+%); launched at .*kernel_test.lua:%d+"), err.message)
  tap.equal(err.code, "kernel_check")
  tap.equal(y:totable(), { 0, 0, 0, 0, 0, 0, 0, 0 })
  k:launch({ grid = 1, block = 7 }, x, y)
  tap.equal(y:totable(), { 1, 1, 1, 1, 1, 1, 1, 0 })
end)

tap.test("a kernel that would end the process is an error, and the script goes on", function()
  local k = dev:kernel [[
    __global__ void share(int n, int* x, int* p) {
      x[threadIdx.x] = 100 / n;
      if (n > 9) p[0] = 1;
    }
  ]]
  local x, shape = dev:zeros({ 8, dtype = "i32" }), { grid = 1, block = 8 }
  k:launch(shape, 0, x, nil)
  local err = tap.raises("device", "kernel share: divides a whole number by zero", function() return x:totable() end)
  tap.ok(err.message:find("kernel_test.lua:%d+%); launched at .*kernel_test.lua:%d+"), err.message)
  tap.ok(err.hint:find("checked = true", 1, true), err.hint)
  tap.equal(err.code, "kernel_check")
  k:launch(shape, 10, x, nil)
  tap.raises("device", "an address without memory", function() return x:totable() end)
  k:launch(shape, 5, x, nil)
  tap.equal(x:totable(), { 20, 20, 20, 20, 20, 20, 20, 20 })
  local checked = dev:kernel("__global__ void k(int* x, int n) { x[threadIdx.x] %= n; }", { checked = true })
  checked:launch(shape, x, 0)
  tap.raises("device", "thread (0,0,0) of block (0,0,0): divides a whole number by zero", function()
    return x:totable()
  end)
end)

tap.test("a compiled function replays launches in their order", function()
  local step = rille.compile(function(x, y)
    local z = x * 2
    saxpy:launch({ grid = 1, block = 64 }, 64, 1, z, y)
    local w = y * 1
    saxpy:launch({ grid = 1, block = 64 }, 64, 1, w, w)
    return w
  end)
  for i = 1, 5 do
    local y = dev:ones { 64 }
    local w = step(dev:full { 64, value = i }, y)
    tap.equal(w:sum():item(), 64 * 2 * (1 + 2 * i))
    tap.equal(y:sum():item(), 64 * (1 + 2 * i))
  end
  local n = 0
  local changing = rille.compile(function(y)
    n = n + 1
    saxpy:launch({ grid = 1, block = 64 }, n, 1, y, y)
    return y * 1
  end)
  changing(dev:ones { 64 })
  tap.raises("state", "a plain argument changed", function() changing(dev:ones { 64 }) end)
  tap.raises("state", "called inside a compiled function", function()
    local inside = rille.compile(function(y) dev:kernel("__global__ void k() {}") return y end)
    for _ = 1, 2 do inside(dev:ones { 1 }) end
  end)
end)

tap.test("the same source for a GPU, by NVRTC", function()  -- without a toolkit, of tests/requirements-nvrtc.txt
  tap.raises("invalid", "'gpu' is not a GPU architecture", function() return saxpy:cubin "gpu" end)
  local cubin = saxpy:cubin "sm_80"
  tap.equal(cubin.image:sub(2, 4), "ELF")
  tap.equal(cubin.name, "_Z5saxpyifPKfPf")
  local plain = dev:kernel [[
    constexpr int two() { return 2; }
    int twice(int x) { return two() * x; }
    __global__ void k(uint32_t* x, half* h) { x[0] = twice(x[0]) + (INFINITY > FLT_MAX); h[0] += half(M_PI); }
  ]]
  tap.equal(plain:cubin("sm_80").image:sub(2, 4), "ELF")
  local ptx = saxpy:ptx "sm_80"
  tap.ok(ptx:find(".entry _Z5saxpyifPKfPf(", 1, true) and ptx:find(".target sm_80", 1, true), ptx:sub(1, 400))
  tap.ok(saxpy:ptx():find(".target sm_90", 1, true), "an H100's, of a kernel for the CPU")
  tap.raises("invalid", "ptx: 'gpu' is not a GPU architecture", function() return saxpy:ptx "gpu" end)
  tap.raises("invalid", "sass: 'gpu' is not a GPU architecture", function() return saxpy:sass "gpu" end)
  local fine, listing = pcall(saxpy.sass, saxpy, "sm_80")  -- nvdisasm need not be there
  if fine then tap.ok(listing:find("_Z5saxpyifPKfPf", 1, true), listing:sub(1, 400))
  else tap.ok(listing.kind == "device" and listing.hint:find "nvidia%-cuda%-nvdisasm", tostring(listing)) end
  local only_here = dev:kernel("#ifndef RILLE_CPU\n#error not here\n#endif\n__global__ void k(int* x) { x[0] = 1; }")
  local err = tap.raises("invalid", "kernel k:", function() return only_here:cubin "sm_80" end)
  tap.equal(err.code, "kernel_compile")
end)

tap.test("a profile names kernels", function()
  local x, y = dev:ones { 8 }, dev:ones { 8 }
  local profile = dev:profile(function()
    saxpy:launch({ grid = 1, block = 8 }, 8, 1, x, y)
    y:sum():item()
  end)
  local found
  for _, row in ipairs(profile.rows) do found = found or (row.name == "launch" and row.shape) end
  tap.ok(found and found:find("^saxpy: "), tostring(found))
end)

tap.test("a script without writes still launches: printf", function()
  local k = dev:kernel [[__global__ void hello() { if (threadIdx.x < 2) printf("# hello from %d\n", threadIdx.x); }]]
  k:launch({ grid = 1, block = 32 })
  dev:synchronize()
end)

tap.test("on the CPU launches on streams are in the program's order", function()
  local s, t = dev:stream(), dev:stream()
  local x, y = dev:ones { 100 }, dev:zeros { 100 }
  local before = s:record()
  saxpy:launch({ grid = 1, block = 128, stream = s }, 100, 2, x, y)
  x:mul_(3)
  local go = saxpy:bind { grid = 1, block = 128, stream = t }
  go(100, 1, x, y)
  local after = t:record()
  tap.ok(before:elapsed(after) >= 0 and after:elapsed(before) <= 0)
  tap.equal({ before:done(), after:done() }, { true, true })
  s:wait(after)
  dev:wait(after)
  s:synchronize()
  tap.equal(y:sum():item(), 500)
end)

tap.test("what a stream is not", function()
  local s = dev:stream()
  local shape = { grid = 1, block = 1, stream = s }
  tap.raises("invalid", "stream", saxpy.bind, saxpy, { grid = 1, block = 1, stream = 3 })
  tap.raises("invalid", "wait", s.wait, s, s)
  tap.equal(tostring(s), "Stream cpu")
  s:release()
  s:release()
  tap.equal(tostring(s), "Stream cpu (released)")
  tap.raises("state", "bind: stream: the stream was released", saxpy.bind, saxpy, shape)
  tap.raises("state", "record: the stream was released", s.record, s)
  tap.raises("state", "synchronize: the stream was released", function() s:synchronize() end)
  tap.raises("state", "wait: the stream was released", s.wait, s, dev:record())
end)

tap.test("a kernel's error comes with the wait for its stream", function()
  local k = dev:kernel("__global__ void k(float* y) { y[threadIdx.x + 4] = 1; }", { checked = true })
  local s, y = dev:stream(), dev:zeros { 4 }
  k:launch({ grid = 1, block = 1, stream = s }, y)
  tap.raises("device", "writes y[4]", function() s:synchronize() end)
  dev:synchronize()
end)

tap.test("inside a compiled function streams are hints, and there are no events", function()
  local s, y = dev:stream(), dev:zeros { 4 }
  local e = s:record()
  local step = rille.compile(function(x)
    saxpy:launch({ grid = 1, block = 4, stream = s }, 4, 1, x, y)
    for _, f in ipairs { function() s:record() end, function() s:wait(e) end, function() dev:wait(e) end,
      function() s:synchronize() end } do
      tap.raises("state", "inside a compiled function", f)
    end
    return y + 0
  end)
  for i = 1, 4 do tap.equal(step(dev:ones { 4 }):totable(), { i, i, i, i }) end
end)

tap.test("shared memory is declared in whatever order of the words", function()
  for _, declaration in ipairs { "extern __shared__ float s[];", "__shared__ extern float s[];",
    "extern volatile __shared__ float s[];", "extern float __shared__ s[];",
    "extern __align__(16) __shared__ float s[];", "extern __shared__ float s[] __attribute__((aligned(16)));",
    "static __shared__ float s[64];", "__shared__ static float s[64];", "__shared__ float s[64];" } do
    local k = dev:kernel(([[
      __global__ void k(float* y) {
        %s
        s[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        y[threadIdx.x] = s[63 - threadIdx.x];
      }]]):format(declaration))
    local y = dev:zeros { 64 }
    k:launch({ grid = 1, block = 64, shared = 256 }, y)
    tap.equal(y[1]:item(), 64, declaration)
    tap.equal(y[64]:item(), 1, declaration)
  end
end)

tap.test("a define may have any name, and is one line", function()
  local source = "__global__ void k(float* y) { y[0] = %s; }"
  for _, name in ipairs { "N", "T", "x", "value", "mask", "count", "grid", "thread" } do
    local y = dev:zeros { 1 }
    dev:kernel(source:format(name), { defines = { [name] = 7 } }):launch({ grid = 1, block = 1 }, y)
    tap.equal(y:item(), 7, name)
    dev:kernel(source:format(name), { options = { "-D" .. name .. "=9" } }):launch({ grid = 1, block = 1 }, y)
    tap.equal(y:item(), 9, name)
  end
  tap.raises("invalid", "more than one line", function()
    dev:kernel(source:format "N", { defines = { N = "1\n2" } })
  end)
end)

tap.test("tiles of tiles, a sum of doubles as old sources define it, and vectors where they may begin", function()
  local ranks = dev:kernel [[
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __global__ void k(int* y) {
      auto tile = cg::tiled_partition<4>(cg::tiled_partition<32>(cg::this_thread_block()));
      y[threadIdx.x] = tile.meta_group_rank() * 100 + tile.meta_group_size();
    }]]
  local y = dev:zeros { 64, dtype = "i32" }
  ranks:launch({ grid = 1, block = 64 }, y)
  tap.equal({ y[1]:item(), y[5]:item(), y[33]:item(), y[64]:item() }, { 8, 108, 8, 708 })

  local sum = dev:kernel [[
    #if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 600
    __device__ double atomicAdd(double* address, double val) {
      unsigned long long* as_word = (unsigned long long*)address;
      unsigned long long old = *as_word, assumed;
      do {
        assumed = old;
        old = atomicCAS(as_word, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
      } while (assumed != old);
      return __longlong_as_double(old);
    }
    #endif
    __global__ void k(double* y) { atomicAdd(y, 0.5); }]]
  local total = dev:zeros { 1, dtype = "f64" }
  sum:launch({ grid = 2, block = 32 }, total)
  tap.equal(total:item(), 32)

  local copy = dev:kernel("__global__ void k(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }")
  local x, out = dev:arange { 32, dtype = "f32" }, dev:zeros { 16 }
  copy:launch({ grid = 1, block = 4 }, x:narrow(1, 5, 16), out)
  tap.equal(out[1]:item(), 4)
  tap.raises("invalid", "the tensor's address must be a multiple of 16 bytes", function()
    copy:launch({ grid = 1, block = 4 }, x:narrow(1, 2, 16), out)
    return out[1]:item()
  end)
end)

tap.done()
