-- run: ephemeral
-- Gradients where a slope is missing, infinite or a matter of taste: zeros, ties, bounds, infinities. What torch 2.15
-- gives, except where a line says otherwise.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")
local inf, nan = math.huge, 0 / 0

local function f64(t) return dev:tensor(t, { dtype = "f64" }) end

local function same(got, want)
  if #got ~= #want then return false end
  for i, v in ipairs(got) do
    local w = want[i]
    if (v ~= v) ~= (w ~= w) then return false end
    if v == v and v ~= w and not (math.abs(v - w) <= 1e-6 * math.max(1, math.abs(w))) then return false end
  end
  return true
end

-- Each operand, and the gradient of fn's sum that it is to get; plainly and compiled.
local function slopes(name, fn, ...)
  local operands, wanted = {}, {}
  for i, pair in ipairs { ... } do operands[i], wanted[i] = pair[1], pair[2] end
  tap.test("the slope of " .. name, function()
    local leaves, list = {}, {}
    for i, x in ipairs(operands) do
      leaves[i] = f64(x):requires_grad_()
      list[i] = { name = tostring(i), tensor = leaves[i] }
    end
    local function gradients()
      fn(unpack(leaves)):sum():backward()
      local out = {}
      for i, x in ipairs(leaves) do
        out[i] = x.grad * 1
        x:set_grad()
      end
      return unpack(out)
    end
    local compiled = rille.compile(gradients)
    for call = 0, 3 do
      local out = call == 0 and { gradients() } or { compiled() }
      for i, g in ipairs(out) do
        local got = g:totable()
        tap.ok(same(got, wanted[i]), ("operand %d, call %d: %s, not %s"):format(i, call, table.concat(got, ", "),
          table.concat(wanted[i], ", ")))
      end
    end
  end)
end

local ln2, half = math.log(2), 0.5 / math.sqrt(2)
slopes("x^0", function(x) return x:pow(0) end, { { 0, 2 }, { 0, 0 } })
slopes("x^1", function(x) return x:pow(1) end, { { 0, 2 }, { 1, 1 } })
slopes("x^2", function(x) return x:pow(2) end, { { 0, -2 }, { 0, -4 } })
slopes("x^0.5", function(x) return x:pow(0.5) end, { { 0, 2 }, { inf, half } })
slopes("x^-1", function(x) return x:pow(-1) end, { { 0, 2 }, { -inf, -0.25 } })
slopes("x^y", function(x, y) return x:pow(y) end, { { 0, 0, 0, 2, 0, -2, -2 }, { 0, 0, -inf, 0, inf, -4, 0 } },
  { { 0, 2, -1, 0, 0.5, 2, 0 }, { 0, 0, -inf, ln2, 0, nan, nan } })
slopes("0^x", function(x) return 0 ^ x end, { { 0, 1, 2, -1 }, { 0, 0, 0, -inf } })
slopes("2^x", function(x) return 2 ^ x end, { { 0, 1 }, { ln2, 2 * ln2 } })
slopes("sqrt at 0", function(x) return x:sqrt() end, { { 0, 4 }, { inf, 0.25 } })
slopes("rsqrt at 0", function(x) return x:rsqrt() end, { { 0, 4 }, { -inf, -1 / 16 } })
slopes("abs at 0", function(x) return x:abs() end, { { 0, -1 }, { 0, -1 } })
slopes("log at 0", function(x) return x:log() end, { { 0, 1 }, { inf, 1 } })
slopes("maximum at ties", function(a, b) return a:maximum(b) end, { { 1, 2, 3 }, { 0.5, 0, 1 } },
  { { 1, 3, 2 }, { 0.5, 1, 0 } })
slopes("minimum at ties", function(a, b) return a:minimum(b) end, { { 1, 2, 3 }, { 0.5, 1, 0 } },
  { { 1, 3, 2 }, { 0.5, 0, 1 } })
slopes("max at ties", function(x) return x:max() end, { { 3, 3, 1 }, { 0.5, 0.5, 0 } })
slopes("min at ties", function(x) return x:min() end, { { 1, 3, 1 }, { 0.5, 0, 0.5 } })
-- A value at a bound is let through unchanged, and so is its gradient. Torch 2.15 gives 0 there, earlier ones gave 1.
slopes("clamp at its bounds", function(x) return x:clamp(0, 1) end, { { -1, 0, 0.5, 1, 2 }, { 0, 1, 1, 1, 0 } })
slopes("relu at 0", function(x) return x:relu() end, { { 0, -1, 1 }, { 0, 0, 1 } })
slopes("the norm of zeros", function(x) return x:norm() end, { { 0, 0 }, { 0, 0 } })
slopes("the 3-norm of zeros", function(x) return x:norm(3) end, { { 0, 0 }, { 0, 0 } })
slopes("the 1-norm at 0", function(x) return x:norm(1) end, { { 0, -2 }, { 0, -1 } })
slopes("the largest size at ties", function(x) return x:norm(inf) end, { { 2, -2, 0 }, { 0.5, -0.5, 0 } })
slopes("softmax of nothing but -inf", function(x) return x:softmax(1) end, { { -inf, -inf }, { nan, nan } })
slopes("softmax with -inf", function(x) return x:softmax(1) * f64 { 0, 1 } end, { { -inf, 1 }, { 0, 0 } })
slopes("logsumexp with -inf", function(x) return x:logsumexp(1) end, { { -inf, 1 }, { 0, 1 } })
slopes("var of one, without correction", function(x) return x:var(nil, { correction = 0 }) end, { { 1 }, { 0 } })
slopes("std of equals", function(x) return x:std() end, { { 1, 1 }, { 0, 0 } })
slopes("std of one, without correction", function(x) return x:std(nil, { correction = 0 }) end, { { 1 }, { 0 } })
slopes("prod with a zero", function(x) return x:prod() end, { { 0, 2, 3 }, { 6, 0, 0 } })
slopes("prod with two zeros", function(x) return x:prod() end, { { 0, 0, 3 }, { 0, 0, 0 } })
slopes("atan2 at the origin", function(a, b) return a:atan2(b) end, { { 0, 0, 1 }, { 0, -1, 0 } },
  { { 0, -1, 0 }, { 0, 0, -1 } })
slopes("asin at its ends", function(x) return x:asin() end, { { -1, 0, 1 }, { inf, 1, inf } })
slopes("sigmoid far out", function(x) return x:sigmoid() end, { { -1000, 0, 1000 }, { 0, 0.25, 0 } })
slopes("softplus far out", function(x) return x:softplus() end, { { -1000, 0, 1000 }, { 0, 0.5, 1 } })
slopes("binary cross-entropy far out", function(x) return x:binary_cross_entropy_with_logits(f64 { 1, 0 }, "sum") end,
  { { 1000, -1000 }, { 0, 0 } })

-- A row of six is the tail of what is computed as vectors, a contiguous tensor nearly all body.
tap.test("values and slopes do not depend on how elements lie", function()
  dev:seed(3)
  local x, weight = dev:randn { 2000, 6 }, dev:randn { 2000, 6 }
  local function of(name, option, windowed)
    local leaf = x:clone():requires_grad_()
    local from = windowed and leaf:cat({ leaf }, 2):narrow(2, 1, 6) or leaf
    local y = from[name](from, option)
    local loss = (y * weight):sum()
    loss:backward()
    return y:detach(), leaf.grad
  end
  for _, f in ipairs { { "gelu", "none" }, { "gelu", "tanh" }, { "silu" }, { "tanh" }, { "sigmoid" }, { "softplus" },
    { "elu" }, { "erf" }, { "exp" }, { "expm1" }, { "sin" }, { "cos" }, { "sinh" }, { "hardswish" } } do
    local y, slope = of(f[1], f[2], false)
    local other, other_slope = of(f[1], f[2], true)
    local values, slopes_off = y:ne(other):sum():item(), slope:ne(other_slope):sum():item()
    tap.ok(values + slopes_off == 0, ("%s: %d values, %d slopes"):format(f[1], values, slopes_off))
  end
end)

tap.done()
