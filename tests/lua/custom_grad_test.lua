-- run: ephemeral
-- rille.custom_grad: gradients that a script gives, also of kernels of its own.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

local kernels = {}
for name, body in pairs { cube = "x[i] * x[i] * x[i] * a", slope = "3 * x[i] * x[i] * a * g[i]" } do
  kernels[name] = dev:kernel(([[
    __global__ void %s(int n, float a, const float* x, const float* g, float* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = %s;
    }
  ]]):format(name, body))
end
local function run(kernel, a, x, g)
  local y = dev:zeros(x:shape())
  kernel:launch({ grid = math.ceil(x:numel() / 64), block = 64 }, x:numel(), a, x, g, y)
  return y
end

-- a x^3 by a kernel, its gradient by another.
local cube = rille.custom_grad {
  forward = function(kept, x, a)
    kept.x, kept.a = x:contiguous(), a
    return run(kernels.cube, a, kept.x, kept.x)
  end,
  backward = function(kept, gy) return run(kernels.slope, kept.a, kept.x, gy:contiguous()) end,
}

-- Of the same by finite differences, in steps of h; f gives one number.
local function differences(x, f, h)
  local out = {}
  for i = 1, x:numel() do
    local step = dev:zeros { x:numel() }
    step:narrow(1, i, 1):fill_(h)
    step = step:reshape(x:shape())
    out[i] = (f(x + step):item() - f(x - step):item()) / (2 * h)
  end
  return out
end

tap.test("a kernel's gradient by another kernel is that of finite differences", function()
  dev:seed(3)
  local w = dev:randn { 4, 3 }
  local x = dev:randn { 2, 3 }
  local function loss(t) return (cube(t:tanh(), 0.5):linear(w):sin() * 2):sum() end
  local leaf = x:clone():requires_grad_()
  loss(leaf):backward()
  local got, wanted = leaf.grad:reshape(6):totable(), differences(x, loss, 1e-2)
  for i = 1, 6 do tap.ok(math.abs(got[i] - wanted[i]) < 2e-3, ("%d: %g, not %g"):format(i, got[i], wanted[i])) end
end)

tap.test("it works twice in one loss, beside ordinary operations", function()
  local x = dev:tensor({ 1, 2 }):requires_grad_()
  local y = cube(x, 1)
  local total = cube(y, 1) + y + x               -- x^9 + x^3 + x
  total:sum():backward()
  tap.equal(x.grad:totable(), { 9 + 3 + 1, 9 * 256 + 12 + 1 })
end)

tap.test("several arguments and results; what has no gradient is nil", function()
  local both = rille.custom_grad {
    forward = function(kept, x, scale, ids, y)
      kept.scale, kept.x, kept.y = scale, x, y
      return x * y * scale, x + ids:to("f32")
    end,
    backward = function(kept, gp, gs) return gp * kept.y * kept.scale + gs, nil, nil, gp * kept.x * kept.scale end,
  }
  local x, y = dev:tensor({ 2 }):requires_grad_(), dev:tensor({ 5 }):requires_grad_()
  local ids = dev:tensor({ 7 }, { dtype = "i64" })
  local product, sum = both(x, 3, ids, y)
  tap.equal({ product:item(), sum:item() }, { 30, 9 })
  product:sum():backward()                       -- nothing came to the sum: its gradient is zeros
  tap.equal({ x.grad:item(), y.grad:item() }, { 15, 6 })
end)

tap.test("without grad mode, or without a leaf, it has no history", function()
  local x = dev:tensor({ 2 }):requires_grad_()
  tap.equal(rille.no_grad(cube, x, 1).requires_grad, false)
  tap.equal(cube(x:detach(), 1).requires_grad, false)
  tap.equal(cube(x, 1).requires_grad, true)
end)

tap.test("it is recorded by rille.compile and replayed without Lua", function()
  local function trained(wrap)
    local calls = 0
    local f = rille.custom_grad {
      forward = function(kept, x)
        calls = calls + 1
        kept.x = x
        return run(kernels.cube, 1, x, x)
      end,
      backward = function(kept, gy) return run(kernels.slope, 1, kept.x, gy:contiguous()) end,
    }
    local w = dev:tensor { 0.5, -0.4, 0.3 }:requires_grad_()
    local opt = rille.optim.sgd({ w }, { lr = 0.002 })
    local update = wrap(function(x)
      local loss = (f(w * x) - 0.2):pow(2):sum()
      loss:backward()
      opt:step()
      return loss
    end)
    local losses = {}
    for i = 1, 6 do losses[i] = update(dev:tensor { 1, 2, 3 }):item() end
    return losses, calls
  end
  local plain = trained(function(fn) return fn end)
  local compiled, calls = trained(rille.compile)
  tap.equal(compiled, plain)
  tap.equal(calls, 2)
  tap.ok(compiled[6] < compiled[1])
end)

tap.test("a gradient that the script holds, too, is never written to", function()
  local given = dev:tensor { 3, 4 }                -- older than the rule's call
  local made, came                                 -- made there and kept; what came, passed on
  local rules = {
    older = function() return given end,
    window = function() return given:reshape { 1, 2 }:reshape(2) end,
    kept = function(_, g)
      made = g * 0 + given
      return made
    end,
    passed = function(_, g)
      came = g
      return g
    end,
  }
  for name, backward in pairs(rules) do
    local x = dev:tensor({ 1, 2 }):requires_grad_()
    local y = dev:tensor({ 1, 2 }):requires_grad_()
    local f = rille.custom_grad { forward = function(_, t) return t * 1 end, backward = backward }
    local sum = f(x:reshape { 2 }) + y
    sum:sum():backward()
    rille.optim.clip_grad_norm({ x, y }, 1)
    local held = name == "passed" and came or name == "kept" and made or given
    tap.equal(held:totable(), name == "passed" and { 1, 1 } or { 3, 4 })
    tap.ok(math.abs(x.grad:pow(2):sum():item() + y.grad:pow(2):sum():item() - 1) < 1e-4, name)
  end
end)

tap.test("mistakes are errors", function()
  local x = dev:tensor({ 1, 2 }):requires_grad_()
  tap.raises("invalid", "did you mean 'forward'", function() rille.custom_grad { forwards = print } end)
  tap.raises("invalid", "backward", function() rille.custom_grad { forward = print } end)
  local function of(forward, backward) return rille.custom_grad { forward = forward, backward = backward }(x) end
  local function same(_, t) return t * 1 end
  tap.raises("invalid", "forward gave 3", function() of(function() return 3 end, same) end)
  tap.raises("invalid", "forward gave nothing", function() of(function() end, same) end)
  tap.raises("invalid", "forward returned i64", function() of(function(_, t) return t:to("i64") end, same) end)
  tap.raises("invalid", "returned f32[1] as the gradient of f32[2], input 1", function()
    of(same, function() return dev:zeros { 1 } end):sum():backward()
  end)
  tap.raises("invalid", "returned a string as gradient 1", function()
    of(same, function() return "x" end):sum():backward()
  end)
  local function raises() rille.error { kind = "state", message = "no way back" } end
  local ok, e = pcall(function() of(same, raises):sum():backward() end)
  tap.ok(not ok and e.kind == "state" and e.message:find("no way back", 1, true), tostring(e))
  local y = of(same, same)
  local loss = y:sum()
  loss:backward()
  tap.raises("state", "a second time", function() loss:backward() end)
  tap.ok(not pcall(function() of(same, function(_, g) return g * g:sum():item() end):sum():backward() end))
end)

tap.test("a tape that no backward walked forgets its functions", function()
  local seen = setmetatable({}, { __mode = "k" })
  local f = rille.custom_grad {
    forward = function(kept, x)
      seen[kept] = true
      return x * 1
    end,
    backward = function(_, gy) return gy end,
  }
  local x = dev:tensor({ 1 }):requires_grad_()
  for _ = 1, 50 do f(x):free() end
  collectgarbage()
  f(x):free()                                    -- the numbers that were noted are forgotten now
  collectgarbage()
  collectgarbage()
  local left = 0
  for _ in pairs(seen) do left = left + 1 end
  tap.ok(left < 10, left .. " are left")
end)

tap.done()
