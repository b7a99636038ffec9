-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

tap.test("call 1 runs, call 2 is traced, later calls replay: equal results", function()
  local ran = 0
  local f = rille.compile(function(x, k)
    ran = ran + 1
    return (x * k):sum(), x:exp()
  end)
  for i = 1, 5 do
    local s, e = f(dev:full { 3, value = i }, 2)
    tap.equal(s:item(), 6 * i)
    tap.equal(e:shape(), { 3 })
  end
  tap.equal(ran, 2)
  tap.equal((f(dev:full { 3, value = 1 }, 3)):item(), 9)
  tap.equal(ran, 3)
end)

tap.test("a returned tensor never changes", function()
  local f = rille.compile(function(x) return x * 2 end)
  local out = {}
  for i = 1, 4 do out[i] = f(dev:full { 2, value = i }) end
  for i = 1, 4 do tap.equal(out[i]:totable(), { 2 * i, 2 * i }) end
end)

tap.test("reading a value while tracing names the line", function()
  local f = rille.compile(function(x)
    local s = x:sum()
    s:item()
    return s
  end)
  f(dev:ones { 2 })
  local err = tap.raises("state", "inside a compiled function", f, dev:ones { 2 })
  tap.ok(err.message:find("compile_test.lua:38", 1, true) or err.message:find("compile_test.lua:%d+"), err.message)
  tap.equal(dev:ones { 2 }:sum():item(), 2)
end)

tap.test("waiting while tracing is refused", function()
  local f = rille.compile(function(x) rille.sleep("1ms") return x * 2 end)
  f(dev:ones { 2 })
  tap.raises("state", "waited", f, dev:ones { 2 })
end)

tap.test("a different second call is refused, naming where", function()
  local n = 0
  local f = rille.compile(function(x)
    n = n + 1
    if n == 2 then return x:exp() end
    return x * 2
  end)
  f(dev:ones { 2 })
  tap.raises("state", "", f, dev:ones { 2 })
end)

tap.test("errors of the function come through and leave all in order", function()
  local fail = true
  local f = rille.compile(function(x)
    if fail then error("mine") end
    return x * 2
  end)
  tap.raises(nil, "mine", f, dev:ones { 2 })
  fail = false
  for _ = 1, 3 do tap.equal(f(dev:ones { 2 }):totable(), { 2, 2 }) end
end)

tap.test("arguments and results are checked", function()
  tap.raises("invalid", "expected a function", rille.compile, 3)
  tap.raises("invalid", "did you mean 'check'", rille.compile, function() end, { chekc = true })
  tap.raises("invalid", "argument 1 is", rille.compile(function(x) return x end), { 1 })
  tap.raises("invalid", "result 1 is", rille.compile(function(x) return 5 end), dev:ones { 2 })
end)

tap.test("a training step replayed equals the same step traced each time, bit for bit", function()
  local function losses(wrap)
    dev:seed(3)
    local x, y = dev:randn { 16, 4 }, dev:randint { 16, high = 3 }
    local layer = rille.nn.linear(4, 3, { seed = 5 })
    local opt = rille.optim.adamw(layer:parameters(), { lr = 0.05 })
    local step = wrap(function(a, b)
      local loss = layer(a):dropout(0.1):cross_entropy(b)
      loss:backward()
      opt:step()
      return loss
    end)
    local out = {}
    for i = 1, 6 do
      opt:set_lr(0.05 / i)
      out[i] = step(x, y):item()
    end
    return out
  end
  local compiled, checked = losses(rille.compile), losses(function(f) return rille.compile(f, { check = true }) end)
  tap.equal(compiled, checked)
  tap.ok(compiled[6] < compiled[1])
end)

tap.test("explain tells what is replayed", function()
  local f = rille.compile(function(x) return (x:exp() + x:exp()):sum(), x:log() end)
  tap.equal(f:explain(), nil)
  tap.ok(tostring(f):find("not recorded yet", 1, true))
  for _ = 1, 2 do f(dev:ones { 100 }) end
  local plan = f:explain()
  tap.equal(plan.recorded, 5)
  tap.equal(plan.calls, 3)  -- one exp for both, joined with the addition
  tap.ok(tostring(plan):find("3 operations (5 asked for)", 1, true), tostring(plan))
  local g = rille.compile(function(a, b) return a:matmul(b) end)
  for _ = 1, 2 do g(dev:ones { 10, 20 }, dev:ones { 20, 30 }) end
  tap.equal(g:explain().flops, 2 * 10 * 20 * 30)
  tap.equal(g:explain().bytes, 4 * (200 + 600 + 300))
  local small = rille.compile(function(a) return (a:matmul(a) + 1):matmul(a) end)
  for _ = 1, 2 do small(dev:ones { 20, 20 }) end
  tap.equal(small:explain().arena_bytes, 1600)
  tap.ok(tostring(small:explain()):find("arena 1.6 kB, unshared 3.2 kB", 1, true), tostring(small:explain()))
  tap.equal(tostring(small), "Compiled: 3 operations, arena 1.6 kB")
  tap.ok(tostring(g:explain()):find("arena 0 B, unshared 0 B", 1, true), tostring(g:explain()))
end)

tap.test("the gradient of logits takes their memory", function()
  for _, dtype in ipairs { "f32", "bf16" } do
    local x, y = dev:randn { 64, 24, dtype = dtype }, dev:randint { 64, low = 0, high = 1000 }
    local one = dev:randn { 24, 1000, dtype = dtype }
    local other = one:clone()
    local function loss_of(w)
      w:requires_grad_()
      return function()
        local loss = x:matmul(w):cross_entropy(y)
        loss:backward()
        return loss
      end
    end
    local plain, compiled = loss_of(one), rille.compile(loss_of(other))
    for _ = 1, 4 do tap.equal(compiled():item(), plain():item()) end
    tap.equal(other.grad:totable(), one.grad:totable())
    local logits, arena = 64 * 1000 * (dtype == "f32" and 4 or 2), compiled:explain().arena_bytes
    tap.ok(arena >= logits and arena < 1.5 * logits, ("%s: an arena of %d for %d"):format(dtype, arena, logits))
  end
end)

tap.test("recorded with an argument that the function also reaches by itself, it holds for that one", function()
  local s, o = dev:zeros { 3 }, dev:ones { 3 }
  local f = rille.compile(function(x) s:add_(1) return x * 2 end)
  for _ = 1, 3 do f(s) end
  for _ = 1, 3 do tap.equal(f(o):totable(), { 2, 2, 2 }) end
  tap.equal({ s:totable(), o:totable() }, { { 6, 6, 6 }, { 1, 1, 1 } })
  local views = rille.compile(function(x) return x:view { 2, 3 }:sum(2) + x:narrow(1, 1, 2) end)  -- its own
  for i = 1, 6 do tap.equal(views(dev:full { 6, value = i }):totable(), { 4 * i, 4 * i }) end
  tap.equal(#views:explain().retraces, 0)
  local same = rille.compile(function() return s end)
  tap.equal(same():totable(), { 6, 6, 6 })
end)

tap.test("an argument that the function also reaches by itself is recorded for itself", function()
  local total = dev:tensor { 1, 2, 3 }
  local f = rille.compile(function(x)
    local before = x * 2
    total:add_(1)
    return x * 2 - before                            -- one product for both, unless x is the total
  end)
  for _ = 1, 3 do tap.equal(f(dev:tensor { 5, 5, 5 }):totable(), { 0, 0, 0 }) end
  for _ = 1, 3 do tap.equal(f(total):totable(), { 2, 2, 2 }) end
  tap.equal(f(dev:tensor { 5, 5, 5 }):totable(), { 0, 0, 0 })
  tap.equal(total:totable(), { 8, 9, 10 })
  tap.equal(f:explain().variants, 2)
  tap.equal(f:explain().retraces[1].cause, "an argument is, or is no longer, a tensor the function reaches by itself")

  local line = dev:tensor { 1, 10, 100 }
  local g = rille.compile(function(x) line:narrow(1, 1, 2):add_(x) end)
  for _ = 1, 3 do g(dev:tensor { 1, 1 }) end
  tap.equal(line:totable(), { 4, 13, 100 })
  for _ = 1, 3 do g(line:narrow(1, 2, 2)) end        -- it lies over what is written
  tap.equal(line:totable(), { 4 + 13 + 113 + 213, 313, 100 })
  g(line:narrow(1, 1, 2))                            -- at another place of the same memory
  tap.equal(line:totable(), { 2 * 343, 626, 100 })
end)

tap.test("explain tells why a function was recorded anew, and the run is warned once", function()
  local native = require "rille.native"
  local real, lines = native.compiled_warning, {}
  native.compiled_warning = function(...) lines[#lines + 1] = real(...) end
  local f = rille.compile(function(x, k) return x * k end)
  f(dev:ones { 8, 12 }, 2)
  f(dev:ones { 6, 12 }, 2)
  local plan = f:explain()                               -- nothing is replayed yet, but a call was recorded anew
  tap.equal({ plan.calls, plan.variants, plan.retraced, plan.dropped }, { 0, 2, 1, 0 })
  tap.equal(plan.retraces, { { call = 2, cause = "argument 1: f32[8, 12] became f32[6, 12]" } })
  tap.ok(tostring(plan):find("nothing is replayed yet", 1, true), tostring(plan))
  for k = 3, 9 do f(dev:ones { 6, 12 }, k) end
  native.compiled_warning = real
  tap.equal(#lines, 1)
  tap.ok(lines[1]:find("compile_test.lua:%d+ was recorded anew 8 times in 9 calls") and
    lines[1]:find("argument 2: 8 became 9: pass a number that changes as a tensor", 1, true), lines[1])
  plan = f:explain()
  tap.equal(#plan.retraces, 8)
  tap.ok(tostring(plan):find("9 recordings kept, 8 made beyond the first, 0 dropped", 1, true), tostring(plan))
  tap.ok(tostring(plan):find("call 4: argument 2: 3 became 4", 1, true), tostring(plan))
  for _ = 1, 3 do rille.autocast("bf16", function() f(dev:ones { 6, 12 }, 9) end) end
  tap.equal(f:explain().retraces[9].cause, "autocast: off became bf16")
end)

-- What fn gives in each of six calls, plain and compiled; before the fourth one something changes.
local function six_calls(make)
  local given = {}
  for _, compiled in ipairs { false, true } do
    local fn, change, look = make()
    local call, list = compiled and rille.compile(fn) or fn, {}
    for i = 1, 6 do
      if i == 4 then change() end
      call(dev:tensor { 1, 2 })
      list[i] = look()
    end
    given[#given + 1] = list
  end
  return given[1], given[2]
end

tap.test("what is frozen, or trained again, between two calls", function()
  for _, first in ipairs { true, false } do
    local function make()
      local a, b = dev:ones({ 2 }, { requires_grad = true }), dev:ones({ 2 }, { requires_grad = first })
      local opt = rille.optim.sgd({ a }, { lr = 0.1 })
      local function step(x)
        local loss = (a * b * x):sum()
        loss:backward()
        opt:step()
      end
      local function look() return { a:totable(), b.grad and b.grad:totable() or "none" } end
      return step, function() b:set_grad(); b:requires_grad_(not first) end, look
    end
    local plain, compiled = six_calls(make)
    tap.equal(compiled, plain)
  end
end)

tap.test("a model of another type between two calls", function()
  local function make()
    local model, last = rille.nn.linear(2, 2, { seed = 1 }), nil
    local function forward(x) last = model(x:to(model.weight.dtype)); return last end
    return function(x) local y = forward(x); last = y; return y end, function() model:to("f64") end,
      function() return last.dtype end
  end
  local plain = six_calls(make)
  tap.equal(plain, { "f32", "f32", "f32", "f64", "f64", "f64" })
  local model = rille.nn.linear(2, 2, { seed = 1 })
  local f = rille.compile(function(x) return model(x) end)
  for _ = 1, 4 do tap.equal(f(dev:ones { 2 }).dtype, "f32") end
  model:to("f64")
  for _ = 1, 4 do tap.equal(f(dev:ones({ 2 }, { dtype = "f64" })).dtype, "f64") end
  for _, p in ipairs(model:parameters()) do p.tensor:detach():zero_() end
  tap.equal(f(dev:ones({ 2 }, { dtype = "f64" })):totable(), { 0, 0 })
end)

tap.test("a tensor that the function uses and the script frees", function()
  local w = dev:ones { 2 }
  local f = rille.compile(function(x) return x + w end)
  for _ = 1, 4 do f(dev:ones { 2 }) end
  w:free()
  for _ = 1, 2 do tap.raises("state", "was freed at", f, dev:ones { 2 }) end
  f = rille.compile(function(x) x:free() return x end)
  for _ = 1, 2 do tap.raises("state", "was freed at", f, dev:ones { 2 }) end
  tap.equal(rille.compile(function(x) return x + 1 end)(dev:ones { 2 }):totable(), { 2, 2 })
end)

tap.test("recompute is one of three words", function()
  local f = rille.compile(function(x) return x:gelu():sum() end, { recompute = "norms" })
  for _ = 1, 3 do tap.equal(f(dev:zeros { 4 }):item(), 0) end
  tap.raises("invalid", "recompute is 'all'", rille.compile, function() end, { recompute = "all" })
end)

-- One update of a whole batch, or of its parts; each with clipping and PyTorch's zero_grad at the beginning.
local function trained(parts, how)
  local model = rille.nn.linear(4, 3, { seed = 5 })
  local opt = rille.optim.adamw(model:parameters(), { lr = 0.01, loss_scale = how == "scaled" or nil })
  local average = rille.optim.ema(model, { decay = 0.5 })
  local update = rille.compile(function(x, y)
    opt:zero_grad()
    local loss = model(x):cross_entropy(y)
    if how == "scaled" then opt:scaled(loss):backward(); opt:unscale() else loss:backward() end
    rille.optim.clip_grad_norm(model:parameters(), 0.1)
    opt:step()
    average:update()
    return loss
  end, { accumulate = parts, check = how == "checked" })
  dev:seed(3)
  local batches, losses = {}, {}                     -- drawn before: a compiled call moves the random numbers on
  for step = 1, 6 do batches[step] = { dev:randn { 8, 4 }, dev:randint { 8, high = 3 } } end
  for step = 1, 6 do
    local x, y, total = batches[step][1], batches[step][2], 0
    for part = 1, parts do
      local from, to = (part - 1) * 8 / parts + 1, part * 8 / parts
      total = total + update(x:narrow(1, from, to - from + 1), y:narrow(1, from, to - from + 1)):item()
    end
    losses[step] = total / parts
  end
  local result = {}
  for _, p in ipairs(model:parameters()) do
    for _, row in ipairs(p.tensor:detach():reshape { -1 }:totable()) do result[#result + 1] = row end
  end
  average:apply(function()
    for _, p in ipairs(model:parameters()) do
      for _, row in ipairs(p.tensor:detach():reshape { -1 }:totable()) do result[#result + 1] = row end
    end
  end)
  return losses, result
end

tap.test("a batch in parts gives the update of the whole", function()
  for _, how in ipairs { "plain", "scaled", "checked" } do
    local losses, values = trained(1, how)
    for _, parts in ipairs { 2, 4 } do
      local l, v = trained(parts, how)
      for i = 1, #losses do tap.ok(math.abs(l[i] - losses[i]) < 1e-6, how) end
      for i = 1, #values do
        tap.ok(math.abs(v[i] - values[i]) < 1e-5, ("%s, %d parts: %g, %g"):format(how, parts, v[i], values[i]))
      end
    end
  end
end)

tap.test("a part that fails is done again", function()
  local weight = dev:zeros { 1, requires_grad = true }
  local opt = rille.optim.sgd({ weight }, { lr = 1 })
  local fails = false
  local update = rille.compile(function(x)
    if fails then error("mine") end
    local loss = (weight * x):sum()
    loss:backward()
    opt:step()
    return loss
  end, { accumulate = 2 })
  update(dev:full { 1, value = 2 })
  fails = true
  tap.raises(nil, "mine", update, dev:full { 1, value = 100 })
  fails = false
  tap.equal(weight:item(), 0)
  update(dev:full { 1, value = 4 })
  tap.equal(weight:item(), -3)
  tap.equal(rawequal(weight.grad, nil), true)
end)

tap.test("accumulate is a whole number", function()
  for _, bad in ipairs { 0, 1.5, "4" } do
    tap.raises("invalid", "accumulate = " .. tostring(bad), rille.compile, function() end, { accumulate = bad })
  end
end)

tap.test("epilogues are for GPUs: on the CPU they change nothing", function()
  local layer = rille.nn.linear(3, 4)
  local plain, joined = rille.compile(function(x) return layer(x):gelu() end),
    rille.compile(function(x) return layer(x):gelu() end, { epilogues = true })
  for _ = 1, 3 do tap.equal(joined(dev:ones { 2, 3 }):totable(), plain(dev:ones { 2, 3 }):totable()) end
end)

tap.test("a launch reads what was computed once for two", function()
  local k = dev:kernel [[
    __global__ void add(int n, const float* x, float* y) { if (threadIdx.x < n) y[threadIdx.x] += x[threadIdx.x]; }
  ]]
  local f = rille.compile(function(x)
    local a, b, y = x:exp(), x:exp(), x:clone()
    k:launch({ grid = 1, block = 8 }, 8, a, y)
    k:launch({ grid = 1, block = 8 }, 8, b, y)  -- b is a by now
    return y
  end)
  for _ = 1, 4 do
    local y = f(dev:zeros { 8 })
    tap.equal(y:totable(), { 2, 2, 2, 2, 2, 2, 2, 2 })
  end
  tap.equal(f:explain().calls, 4)
end)

tap.test("a profile times what runs, and gives what the function gave", function()
  local x = dev:ones { 64, 64 }
  local p, a, b = dev:profile(function() return x:matmul(x):sum():item(), "b" end)
  tap.equal(a, 64 * 64 * 64)
  tap.equal(b, "b")
  tap.equal(#p.rows, 2)
  tap.ok(p.ms >= p.busy_ms and p.busy_ms > 0)
  tap.equal({ p.rows[1].calls, p.timed_by, p.kernels }, { 1, "clock" })
  tap.ok(tostring(p):find("matmul", 1, true) and tostring(p):find("GFLOP/s", 1, true))
  tap.raises(nil, "mine", function() dev:profile(function() error("mine") end) end)
  tap.equal(#dev:profile(function() end).rows, 0)
  tap.raises("invalid", "expected a function", function() dev:profile(3) end)
end)

-- by turns with the plain function: what is read from outside changes in between
local function follows(fn, change, cause)
  local f = rille.compile(fn)
  for i = 1, 12 do
    local x = dev:full { 3, value = i }
    tap.equal(f(x):totable(), fn(x):totable())
    if i % 3 == 0 then change(i) end
  end
  local retraces = f:explain().retraces
  tap.ok(#retraces > 0)
  tap.ok(retraces[1].cause:find(cause, 1, true), retraces[1].cause)
end

tap.test("plain values, tensors and tables that a function reads by itself", function()
  local k, name, on, w, model = 2, "exp", false, dev:ones { 3 }, { bias = 1 }
  follows(function(x) return x * k end, function(i) k = i + 1 end, "'k', which it reads by itself: 2 became 4")
  follows(function(x) return x[name](x) end, function() name = name == "exp" and "neg" or "exp" end,
    '"exp" became "neg"')
  follows(function(x) return on and x or x + 1 end, function() on = not on end, "false became true")
  follows(function(x) return x + w end, function(i) w = dev:full { 3, value = i } end,
    "'w', which it reads by itself: another Tensor")
  follows(function(x) return x + model.bias end, function(i) model = { bias = i } end, "another table")
  follows(function(x) return k and x + k or x end, function(i) k = i % 2 == 0 and i or nil end, "'k', which it")
end)

tap.test("so do the functions that it calls, and globals", function()
  local k = 1
  local function inner(x) return x * k end
  local function outer(x) return inner(x) + 1 end
  follows(function(x) return outer(x) end, function(i) k = i end, "'k', which it reads by itself: 1 became 3")
  follows(function(x) return (function(y) return inner(y) end)(x) end, function(i)
    local by = i
    inner = function(x) return x - by end
  end, "'inner', which it reads by itself: another function")
  compile_test_scale = 5
  local function scaled(x) return x * compile_test_scale end
  follows(function(x) return scaled(x) end, function(i) compile_test_scale = i end,
    "'compile_test_scale', which it reads by itself: 5 became 3")
end)

tap.test("a value that comes again finds its recording, what the function counts itself is its own", function()
  local k, ran = 1, 0
  local f = rille.compile(function(x)
    ran = ran + 1
    compile_test_count = ran
    return x * k
  end)
  for i = 1, 12 do
    k = i % 2 + 1
    tap.equal(f(dev:ones { 1 }):item(), k)
  end
  tap.equal({ ran, compile_test_count }, { 4, 4 })
  tap.equal(f:explain().variants, 2)
  local nan = 0 / 0
  local g = rille.compile(function(x) return x + nan end)
  for _ = 1, 4 do g(dev:ones { 1 }) end
  tap.equal(g:explain().variants, 1)
end)

tap.test("strings with zeros in them differ, and what rille.no_grad changes is recorded apart", function()
  local f = rille.compile(function(x, text) return x + text:byte(3) end)
  local got = {}
  for i, text in ipairs { "a\0\1", "a\0\1", "a\0\2", "a\0\2", "a\0\3", "a\0\1" } do
    got[i] = f(dev:zeros { 1 }, text):item()
  end
  tap.equal(got, { 1, 1, 2, 2, 3, 1 })

  local w = dev:ones { 1 }:requires_grad_()
  local step = rille.compile(function(x) return (w * x).requires_grad and x * 2 or x * 3 end)
  for _ = 1, 3 do tap.equal(step(dev:ones { 1 }):item(), 2) end
  for _ = 1, 3 do tap.equal(rille.no_grad(step, dev:ones { 1 }):item(), 3) end
  tap.ok(step:explain().retraces[1].cause:find("no_grad", 1, true), step:explain().retraces[1].cause)
  tap.equal(step(dev:ones { 1 }):item(), 2)
end)

tap.test("random numbers are not seeded in what is replayed", function()
  local f = rille.compile(function(x)
    dev:seed(1)
    return x + dev:rand { 1 }
  end)
  f(dev:zeros { 1 })
  tap.raises("state", "dev:seed was called inside a compiled function", function() f(dev:zeros { 1 }) end)
end)

tap.test("a call that has not begun is not finished", function()
  local native = require "rille.native"
  tap.raises("state", "that has not begun", native.compiled_finish, native.compiled(false))
end)

tap.done()
