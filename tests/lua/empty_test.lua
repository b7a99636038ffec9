-- run: ephemeral
-- Tensors without elements: a batch of 0, 0 features, nothing to reduce. An operation gives what torch gives, or an
-- error that names the shapes; plainly, compiled, and with gradients.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")

local function zeros(...) return dev:zeros { ... } end
local function ones(...) return dev:ones { ... } end
local function ids(...) return zeros(...):to("i64") end
local nan, inf = 0 / 0, math.huge

local function values(t)
  if t:numel() == 0 then return {} end
  local out = t:reshape(t:numel()):totable()
  for i, v in ipairs(out) do if type(v) == "boolean" then out[i] = v and 1 or 0 end end
  return out
end

-- All elements of the result are `value`, or they are the list `value`.
local function check(t, shape, value, when)
  if table.concat(t:shape(), ",") ~= table.concat(shape, ",") then
    tap.ok(false, ("%s: shape [%s]"):format(when, table.concat(t:shape(), ",")))
  end
  for i, v in ipairs(values(t)) do
    local w = type(value) == "table" and value[i] or value
    tap.ok(v == w or (v ~= v and w ~= w), ("%s: element %d is %s, not %s"):format(when, i, tostring(v), tostring(w)))
  end
end

-- fn(operands..) has that shape and those values; gradients have the shapes of their operands.
local function gives(name, shape, value, fn, ...)
  local operands = { ... }
  tap.test(name, function()
    local leaves = {}
    for i, x in ipairs(operands) do
      leaves[i] = x:clone()
      if x.dtype == "f32" then leaves[i] = leaves[i]:requires_grad_() end
    end
    local y = fn(unpack(leaves))
    check(y, shape, value, "plain")
    if y.requires_grad then
      y:sum():backward()
      for i, x in ipairs(leaves) do
        if x.grad then check(x.grad * 0, x:shape(), value ~= value and nan or 0, "gradient " .. i) end
      end
    end
    local compiled = rille.compile(fn)
    for call = 1, 3 do check(compiled(unpack(operands)), shape, value, "compiled, call " .. call) end
  end)
end

local function refuses(name, text, fn)
  tap.test(name, function() tap.raises("invalid", text, fn) end)
end

gives("sum of nothing", {}, 0, function(x) return x:sum() end, zeros(0, 3))
gives("sum over nothing", { 3 }, 0, function(x) return x:sum(1) end, zeros(0, 3))
gives("sum of no rows", { 0 }, 0, function(x) return x:sum(2) end, zeros(0, 3))
gives("mean over nothing", { 3 }, nan, function(x) return x:mean(1) end, zeros(0, 3))
gives("mean of no whole numbers", {}, nan, function(x) return x:mean() end, ids(0))
gives("prod over nothing", { 2 }, 1, function(x) return x:prod(2) end, zeros(2, 0))
gives("norm of nothing", {}, 0, function(x) return x:norm() end, zeros(0, 3))
gives("norm over nothing", { 2 }, 0, function(x) return x:norm(2, 2) end, zeros(2, 0))
gives("logsumexp over nothing", { 3 }, -inf, function(x) return x:logsumexp(1) end, zeros(0, 3))
gives("logsumexp, kept", { 1, 3 }, -inf, function(x) return x:logsumexp(1, true) end, zeros(0, 3))
gives("any of nothing", {}, 0, function(x) return x:any() end, zeros(0, 3))
gives("all of nothing", {}, 1, function(x) return x:all() end, zeros(0, 3))
gives("max of no rows", { 0 }, 0, function(x) return x:max(2) end, zeros(0, 3))
gives("argmax of no rows", { 0 }, 0, function(x) return x:argmax(2) end, zeros(0, 3))
refuses("max over nothing", "max: [0, 3] has no elements to choose from", function() return zeros(0, 3):max(1) end)
refuses("argmin over nothing", "argmin: [3, 0] has no elements to choose from",
  function() return zeros(3, 0):argmin(2) end)
refuses("var over nothing", "var: 0 elements of [0, 3]", function() return zeros(0, 3):var() end)

for _, name in ipairs { "softmax", "log_softmax", "cumsum" } do
  gives(name .. " of no rows", { 0, 3 }, 0, function(x) return x[name](x, 2) end, zeros(0, 3))
  gives(name .. " of rows of nothing", { 3, 0 }, 0, function(x) return x[name](x, 2) end, zeros(3, 0))
  gives(name .. " along nothing", { 0, 3 }, 0, function(x) return x[name](x, 1) end, zeros(0, 3))
end
gives("sort", { 0, 3 }, 0, function(x) return (x:sort(1)) end, zeros(0, 3))
gives("topk of 0", { 0 }, 0, function(x) return (x:topk(0)) end, zeros(3))

local function product(a, b) return a:matmul(b) end
gives("matmul over nothing", { 2, 3 }, 0, product, zeros(2, 0), zeros(0, 3))
gives("matmul of no rows", { 0, 3 }, 0, product, zeros(0, 4), ones(4, 3))
gives("matmul of no columns", { 2, 0 }, 0, product, ones(2, 4), zeros(4, 0))
gives("matmul, batch of 0", { 0, 2, 3 }, 0, product, zeros(0, 2, 4), zeros(0, 4, 3))
gives("matmul over nothing, three dimensions", { 2, 3, 4 }, 0, product, zeros(2, 3, 0), zeros(0, 4))
gives("matmul of vectors", {}, 0, product, zeros(0), zeros(0))
gives("einsum over nothing", { 2, 3 }, 0, function(a, b) return a:einsum("ij,jk->ik", b) end, zeros(2, 0), zeros(0, 3))
local function linear(x, w, b) return x:linear(w, b) end
gives("linear over nothing", { 2, 3 }, 0, linear, zeros(2, 0), zeros(3, 0))
gives("linear over nothing, a bias", { 2, 3 }, { 1, 2, 3, 1, 2, 3 }, linear, zeros(2, 0), zeros(3, 0),
  dev:tensor { 1, 2, 3 })
gives("linear over nothing, three dimensions", { 2, 2, 3 }, 1, linear, zeros(2, 2, 0), zeros(3, 0), ones(3))
gives("linear of a vector of nothing", { 3 }, 1, linear, zeros(0), zeros(3, 0), ones(3))
gives("linear, batch of 0", { 0, 3 }, 0, linear, zeros(0, 4), ones(3, 4), ones(3))
gives("linear to nothing", { 2, 0 }, 0, linear, ones(2, 4), zeros(0, 4), zeros(0))
tap.test("the bias of a product over nothing has its gradient", function()
  local b = ones(3):requires_grad_()
  zeros(2, 0):linear(zeros(3, 0), b):sum():backward()
  tap.equal(b.grad:totable(), { 2, 2, 2 })
end)

gives("conv2d, batch of 0", { 0, 4, 6, 6 }, 0, function(x, w, b) return x:conv2d(w, b) end, zeros(0, 3, 8, 8),
  ones(4, 3, 3, 3), ones(4))
refuses("conv2d of no channels", "conv2d: [1, 0, 3, 3] with a weight of [2, 0, 3, 3]",
  function() return zeros(1, 0, 3, 3):conv2d(zeros(2, 0, 3, 3)) end)
gives("max_pool2d, batch of 0", { 0, 3, 4, 4 }, 0, function(x) return x:max_pool2d(2) end, zeros(0, 3, 8, 8))
gives("avg_pool2d, batch of 0", { 0, 3, 4, 4 }, 0, function(x) return x:avg_pool2d(2) end, zeros(0, 3, 8, 8))
refuses("batch_norm, batch of 0", "batch_norm: [0, 3] has 0 values for each channel",
  function() return zeros(0, 3):batch_norm() end)
gives("layer_norm, batch of 0", { 0, 5 }, 0, function(x, w, b) return x:layer_norm(w, b) end, zeros(0, 5), ones(5),
  zeros(5))
gives("layer_norm of nothing", { 5, 0 }, 0, function(x, w, b) return x:layer_norm(w, b) end, zeros(5, 0), zeros(0),
  zeros(0))
gives("rms_norm, batch of 0", { 0, 5 }, 0, function(x, w) return x:rms_norm(w) end, zeros(0, 5), ones(5))
gives("embedding of no ids", { 0, 2 }, 0, function(i, w) return i:embedding(w) end, ids(0), ones(3, 2))
gives("cross_entropy of no rows", {}, nan, function(x, l) return x:cross_entropy(l) end, zeros(0, 5), ids(0))
refuses("cross_entropy among no classes", "cross_entropy: logits [2, 0] with labels [2]",
  function() return zeros(2, 0):cross_entropy(ids(2)) end)
gives("mse_loss of nothing", {}, nan, function(x, y) return x:mse_loss(y) end, zeros(0, 5), zeros(0, 5))
for _, shape in ipairs { { 1, 1, 0, 4 }, { 0, 1, 3, 4 }, { 1, 1, 3, 0 } } do
  refuses("attention with keys of [" .. table.concat(shape, ", ") .. "]", "not empty", function()
    local k = dev:zeros(shape)
    return ones(shape[1], 1, 3, shape[4]):scaled_dot_product_attention(k, k)
  end)
end

gives("cat with nothing", { 2, 3 }, 1, function(a, b) return a:cat({ b }, 1) end, zeros(0, 3), ones(2, 3))
gives("stack", { 2, 0, 3 }, 0, function(a, b) return a:stack({ b }, 1) end, zeros(0, 3), zeros(0, 3))
gives("gather of no places", { 0, 3 }, 0, function(a, i) return a:gather(1, i) end, ones(2, 3), ids(0, 3))
gives("scatter of nothing", { 2, 3 }, 1, function(a, i, b) return a:scatter(1, i, b) end, ones(2, 3), ids(0, 3),
  zeros(0, 3))
gives("index_select of no places", { 0, 3 }, 0, function(a, i) return a:index_select(1, i) end, ones(2, 3), ids(0))
gives("a sum that broadcasts", { 0, 3 }, 0, function(a, b) return a + b end, zeros(0, 3), ones(1, 3))
gives("a product of turned ones", { 3, 0 }, 0, function(a, b) return a:transpose(1, 2) * b:expand(3, 0) end,
  zeros(0, 3), ones(3, 1))
gives("a chain", { 3, 0 }, 0, function(a) return (a:relu():gelu() * 2 + 1):transpose(1, 2):contiguous() end,
  zeros(0, 3))
gives("where", { 0, 3 }, 0, function(a) return a:gt(0):where(a, a) end, zeros(0, 3))
gives("rfft, batch of 0", { 0, 3, 2 }, 0, function(a) return a:rfft() end, zeros(0, 4))
gives("pad", { 2, 2 }, 0, function(a) return a:pad { 1, 1 } end, zeros(2, 0))
gives("flip", { 0, 3 }, 0, function(a) return a:flip(1) end, zeros(0, 3))
gives("repeat_interleave by 0", { 0, 3 }, 0, function(a) return a:repeat_interleave(0, 1) end, ones(2, 3))
gives("half types", { 0, 3 }, 0, function(a) return (a:to("f16") * a:to("f16"):expand(0, 3)):to("f32") end, zeros(0, 3))
tap.test("written in place", function()
  local a = zeros(0, 3)
  a:add_(1):mul_(a):copy_(ones(1, 3)):zero_()
  a:narrow(2, 2, 2):add_(a:narrow(2, 1, 2))
  tap.equal(a:numel(), 0)
end)

tap.done()
