-- run: ephemeral
-- The stand-in driver (tests/support/standin) plays one GPU here; its kernels run on the CPU.
local rille = require "rille"
local tap = require "tap"
local cpu, dev = rille.device("cpu"), rille.device("cuda:0")

tap.test("a CUDA device says what it is", function()
  local list = rille.devices()
  tap.equal(#list, 2)
  tap.ok(list[1] == dev and list[2] == cpu and rille.device("cuda") == dev)
  tap.ok(rille.device() == dev, "it is the device where nothing else is said")
  tap.equal({ dev.name, dev.kind, dev.model, dev.architecture, dev.multiprocessors, dev.threads },
    { "cuda:0", "cuda", "Stand-in GPU", "sm_90", 2, 0 })
  tap.equal(dev.memory_bytes, 2 ^ 30)
  tap.ok(rille.device("cuda:" .. dev.uuid) == dev)
  tap.equal(cpu.model, nil)
  tap.ok(tostring(dev):find("^Device cuda:0: Stand%-in GPU, sm_90, 2 multiprocessors"))
  tap.raises("device", "no device 'cuda:3'", rille.device, "cuda:3")
  tap.raises("invalid", "no device 'tpu'", rille.device, "tpu")
end)

tap.test("tensors are made, computed and read there", function()
  local a = dev:tensor { { 1, 2 }, { 3, 4 } }
  tap.equal((a * 2 + a:transpose(1, 2)):totable(), { { 3, 7 }, { 8, 12 } })
  tap.equal(tostring(a), "Tensor f32[2, 2] cuda:0")
  tap.ok(dev:memory().live > 0 and dev:memory().card_total == 2 ^ 30)
  tap.equal(cpu:memory().card_total, nil)
end)

tap.test("tensors move between devices", function()
  local here = cpu:tensor({ 1, 2, 3 }, { requires_grad = true })
  local there = here:to(dev)
  tap.equal((there + there):detach():to("cpu"):totable(), { 2, 4, 6 })
  tap.ok(there.requires_grad and not here:to(cpu).grad)
  tap.equal(here:detach():to("cuda:0"):to("f64"):to(cpu).dtype, "f64")
  tap.raises("invalid", "cpu and cuda:0", function() return here + there end)
  tap.raises("state", "part of a gradient computation", function() return (there * 2):to(cpu) end)
end)

tap.test("a model moves, and what its parts share stays shared", function()
  local model = rille.nn.sequential { rille.nn.linear(2, 2), rille.nn.linear(2, 2) }
  model[2].weight = model[1].weight
  model:to("cpu")
  tap.ok(model[1].weight == model[2].weight)
  tap.equal(model(cpu:ones { 1, 2 }):shape(), { 1, 2 })
end)

tap.test("memory is listed by owner there too, also for moved tensors", function()
  local model = rille.nn.attention(8, 2, { seed = 1 })
  local function told(device) device:synchronize() return device:memory().summary end
  local function has(device, what) tap.ok(told(device):find(what, 1, true), told(device)) end
  model:to("cpu")
  has(cpu, "parameters of Attention at cuda_test.lua")
  model:to(dev)
  has(dev, "parameters of Attention at cuda_test.lua")
  local opt = rille.optim.adamw(model:parameters(), { lr = 1e-3 })
  has(dev, "state of adamw at cuda_test.lua")
  model(dev:ones { 1, 3, 8 }):sum():backward()
  has(dev, "gradients ")
  opt:step()
  tap.ok(not told(dev):find("gradients ", 1, true), told(dev))
  local add = rille.compile(function(t)
    local loss = model(t):sum()
    loss:backward()
    return loss
  end)
  for _ = 1, 5 do add(dev:ones { 1, 3, 8 }) end
  has(dev, "gradients ")
  opt:zero_grad()
  dev:limit_memory(dev:memory().live + 2 ^ 20)
  local err = tap.raises("memory", "cuda:0: no memory for", function() return dev:ones { 2 ^ 20 }:sum():item() end)
  dev:limit_memory(0)
  tap.ok(err.hint:find("parameters of Attention at cuda_test.lua", 1, true), err.hint)
  tap.ok(err.message:find("; the card has [%d.]+ %a?B free of [%d.]+ %a?B"), err.message)
end)

tap.test("a compiled function runs where its tensors are", function()
  local twice = rille.compile(function(x) return x * 2 + 1 end)
  for i = 1, 5 do
    tap.equal(twice(dev:tensor { i }):totable(), { 2 * i + 1 })
  end
  tap.equal(twice(cpu:tensor { 4 }):totable(), { 9 })
end)

tap.test("joined operations are one kernel of their own", function()
  local f = rille.compile(function(x) return (x:add(1):relu() * 2):sub(x) end)
  local y
  for i = 1, 4 do y = f(dev:tensor { -3, i }) end
  tap.equal(y:totable(), { 3, 6 })
  local plan = f:explain()
  tap.equal({ plan.calls, plan.operations[1].name, plan.one_by_one }, { 1, "fused" })
end)

tap.test("a profile is the device's own", function()
  local x = dev:ones { 64 }
  local p = dev:profile(function() return (x + x):totable() end)
  tap.equal(p.rows[1].name, "add")
  tap.equal(p.timed_by, "cupti")
  tap.ok(tostring(p):find("add_f32 +add +") and tostring(p):find("copy out", 1, true), tostring(p))
end)

-- 40 times 64 numbers that lie three apart: one call of cuFFT each, which is too many.
tap.test("profile and plan report what a library declines", function()
  local x = dev:ones { 40, 64, 3, 2 }
  local p = dev:profile(function() return x:fft2():totable() end)
  local told = assert(p.fallbacks, "nothing was declined")
  tap.equal({ #told, told[1].library, told[1].operation, told[1].calls, told[1].why },
    { 1, "cuFFT", "fourier", 1, "the numbers are stored at distances that it does not support" })
  tap.ok(tostring(p):find("cuFFT, fourier, 1 times: the numbers are stored at distances that it does not support",
    1, true), tostring(p))
  local f = rille.compile(function(y) return y + 1 end)
  for _ = 1, 3 do f(dev:ones { 4 }):totable() end
  tap.ok(tostring(f:explain()):find("cuFFT, fourier, 1 times", 1, true), tostring(f:explain()))
end)

tap.test("attention without tensor cores is reported, also with dropout", function()
  local function told(what)
    local p = dev:profile(what)
    local out = {}
    for _, f in ipairs(p.fallbacks or {}) do out[#out + 1] = f.library .. ", " .. f.operation end
    table.sort(out)
    return table.concat(out, "; "), p
  end
  local function attend(d, dtype)
    local x = dev:randn { 1, 1, 3, d }:to(dtype)
    return x:scaled_dot_product_attention(x, x):to("f32"):sum():item()
  end
  local before = told(function() attend(64, "bf16") end)
  tap.ok(not before:find("tensor cores", 1, true), before)
  local after, p = told(function() attend(8, "bf16") end)
  tap.ok(after:find("tensor cores, attention", 1, true), after)
  tap.ok(tostring(p):find("kernels for tensor cores are for heads of 64 and 128", 1, true), tostring(p))
  local layer = rille.nn.attention(64, 1, { dropout = 0.5, seed = 1 }):to(dev)
  local f = rille.compile(function(x) return rille.autocast("bf16", layer, x) end)
  for _ = 1, 3 do f(dev:ones { 1, 2, 64 }):to("f32"):sum():item() end
  tap.ok(tostring(f:explain()):find("attention with dropout, ", 1, true), tostring(f:explain()))
end)

tap.test("a kernel is launched on the device that made it", function()
  local source = [[
    __global__ void scale(int n, float a, const float* x, float* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] += a * x[i];
    }
  ]]
  local kernel = dev:kernel(source)
  tap.equal(tostring(kernel), "Kernel scale(int n, float a, const float* x, float* y) cuda:0")
  local x, y = dev:arange { 5, dtype = "f32" }, dev:ones { 5 }
  kernel:launch({ grid = 1, block = 8 }, 5, 2, x, y)
  tap.equal(y:totable(), { 1, 3, 5, 7, 9 })
  local go = kernel:bind { grid = 1, block = 8 }
  local step = rille.compile(function(v)
    local w = v * 1
    go(5, 1, x, w)
    return w
  end)
  for i = 1, 5 do tap.equal(step(dev:full { 5, value = i }):totable(), { i, i + 1, i + 2, i + 3, i + 4 }) end
  tap.raises("invalid", "expected an f32 tensor", kernel.launch, kernel, { grid = 1, block = 8 }, 5, 2,
    dev:ones { 5, dtype = "f64" }, y)
  tap.raises("invalid", "a tensor on cuda:0", kernel.launch, kernel,
    { grid = 1, block = 8 }, 5, 2, cpu:ones { 5 }, y)
  tap.raises("invalid", "works on the CPU only", dev.kernel, dev, source, { checked = true })
end)

tap.test("launches on streams wait for each other where they share tensors", function()
  local add_to = dev:kernel [[
    __global__ void add_to(int n, float a, const float* x, float* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] += a * x[i];
    }
  ]]
  local s, t = dev:stream(), dev:stream()
  tap.equal({ tostring(s), s.device }, { "Stream cuda:0", "cuda:0" })
  local before = dev:record()
  local x, y, z, one = dev:tensor { 1, 2, 3 }, dev:zeros { 3 }, dev:zeros { 3 }, dev:ones { 3 }
  local go = add_to:bind { grid = 1, block = 8, stream = s }
  for i = 1, 100 do
    go(3, 1, x, y)
    add_to:launch({ grid = 1, block = 8, stream = t }, 3, 1, y, z)
    x:add_(one)
  end
  s:wait(before)
  t:wait(s:record())
  local after = t:record()
  dev:wait(after)
  after:wait()
  tap.equal({ after:done(), tostring(after), after.device }, { true, "Event cuda:0", "cuda:0" })
  tap.ok(before:elapsed(after) > 0)
  t:synchronize()
  local want_y, want_z = 0, 0
  for i = 1, 100 do want_y = want_y + i; want_z = want_z + want_y end
  tap.equal({ y[1]:item(), z[1]:item(), x[1]:item() }, { want_y, want_z, 101 })
  go(3, -1, y, y)
  s:release()                          -- what was bound keeps it
  go(3, 1, x, y)
  tap.equal(y[1]:item(), 101)
end)

tap.test("two fibers wait for two streams", function()
  local slow = dev:kernel "__global__ void slow(float* y) { for (int i = 0; i < 100000; ++i) y[0] = y[0] * 0.5f + 1; }"
  local function work()
    local s, y = dev:stream(), dev:zeros { 1 }
    for _ = 1, 3 do
      slow:launch({ grid = 1, block = 1, stream = s }, y)
      s:synchronize()
    end
    return y:item()
  end
  local a, b = rille.spawn("a", work), rille.spawn("b", work)
  tap.equal({ a:wait(), b:wait() }, { 2, 2 })
end)

tap.test("a stream or an event of another device is refused", function()
  local k = dev:kernel "__global__ void k(float* y) { y[0] = 1; }"
  local mine, theirs = dev:stream(), cpu:stream()
  tap.raises("invalid", "the stream belongs to cpu, but the kernel to cuda:0",
    k.bind, k, { grid = 1, block = 1, stream = theirs })
  tap.raises("invalid", "the event belongs to cpu, not to cuda:0", mine.wait, mine, theirs:record())
  tap.raises("invalid", "the event belongs to cpu, not to cuda:0", dev.wait, dev, cpu:record())
  local e = dev:record()
  tap.raises("invalid", "the event belongs to cpu, not to cuda:0", function() return e:elapsed(cpu:record()) end)
end)

tap.test("a training finds its first NaN on any device, whichever is the default one", function()
  local data = { next = function() return cpu:ones { 1 } end }
  for _, device in ipairs { dev, cpu } do
    local options = { data = data, steps = 1, log_every = 0, check_numbers = true, update = function()
      local loss = device:tensor(-1):log()
      return loss
    end }
    tap.raises("state", "log makes 1 NaN of 1 values", rille.train, options)
    local err = tap.raises("state", "(cuda_test.lua:", rille.train, options)
    tap.equal(err.code, "not_a_number")
  end
  local function nan() return cpu:tensor(-1):log():item() end
  tap.raises("state", "log makes 1 NaN", cpu.check_numbers, cpu, nan)
  local v = dev:check_numbers(nan)
  tap.ok(v ~= v, "only the device that was asked looks")
end)

tap.test("a transform by the project's own kernels", function()
  tap.equal(dev:ones { 4 }:rfft():totable(), { { 4, 0 }, { 0, 0 }, { 0, 0 } })
end)

tap.test("recordings of several sizes have one arena, and those captured in a smaller one are captured anew", function()
  local w = dev:ones { 64 }
  local function fn(x) return ((x * 2):cumsum(1):exp() * w):cumsum(2):sum() end
  local f = rille.compile(fn)
  for k = 1, 12 do
    for _, n in ipairs { 30, 10, 40, 20, 50 } do
      local x = dev:full { n, 64, value = k / 1024 }
      if n <= 20 + 3 * k then tap.equal(f(x):item(), fn(x):item()) end
    end
  end
  tap.equal({ f:explain().variants, f:explain().one_by_one }, { 5 })
end)

tap.done()
