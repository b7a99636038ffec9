-- What operations.lua runs: a list of { name, inputs, function, options }.
-- inputs: { size, .., low =, high = } (-2, 2) of the type that is tested; or with `ids = N` (whole numbers below N,
--   i64), `chance = p` (bool), `distinct` (each row some order of 0 .. its length - 1, so that nothing is equal).
-- options: types = a key of `types` below, "float" by default; plain = true: no gradients; exact = true: the same bits
--   as the CPU's in the same type; drawn = true: called with (device, type) after both devices were seeded alike, and
--   beside the CPU in the same type; loose: what the bound is multiplied by.
local rille = require "rille"

local types = {
  float = { "f32", "bf16", "f16", "f64" },
  single = { "f32", "f64" },
  whole = { "i64", "i32", "i8", "u8" },
  wide = { "i64", "i32" },                        -- where small types would overflow
  attended = { "f32", "bf16", "f16" },
}

local list = {}
local function case(name, inputs, fn, options)
  list[#list + 1] = { name = name, inputs = inputs, fn = fn, options = options or {} }
end

-- The method of that name; numbers and tables after the tensors.
local function call(name, ...)
  local constants = { ... }
  return function(x, y)
    if y then return x[name](x, y, unpack(constants)) end
    return x[name](x, unpack(constants))
  end
end

local plain = { plain = true }
local square = { 64, 64 }
local function within(low, high) return { 64, 64, low = low, high = high } end

-- Element by element.
for _, name in ipairs { "add", "sub", "mul", "atan2", "maximum", "minimum" } do
  case(name, { square, square }, call(name))
end
case("add, broadcast", { square, { 64 } }, call "add")
case("mul, broadcast", { { 8, 1, 64 }, { 16, 1 } }, call "mul")
case("add, turned", { square, square }, function(a, b) return a:transpose(1, 2) + b end)
case("div", { square, within(0.5, 2) }, call "div")
case("pow", { within(0.5, 2), square }, call "pow")
for _, name in ipairs { "neg", "abs", "exp", "exp2", "expm1", "square", "sin", "cos", "atan", "sinh", "cosh", "tanh",
  "erf", "sigmoid", "relu", "gelu", "silu", "leaky_relu", "elu", "softplus", "hardswish", "hardsigmoid" } do
  case(name, { square }, call(name))
end
for _, name in ipairs { "log", "log2", "log10", "log1p", "rsqrt", "sqrt", "reciprocal" } do
  case(name, { within(0.5, 4) }, call(name))
end
case("tan", { within(-1, 1) }, call "tan")
case("asin", { within(-0.9, 0.9) }, call "asin")
case("acos", { within(-0.9, 0.9) }, call "acos")
case("gelu, exact", { square }, call("gelu", "none"))
case("clamp", { square }, call("clamp", -0.5, 0.5))
for _, name in ipairs { "sign", "floor", "ceil", "round", "trunc", "isnan", "isfinite", "logical_not" } do
  case(name, { square }, call(name), plain)
end
for _, name in ipairs { "lt", "le", "gt", "ge", "eq", "ne" } do case(name, { square, square }, call(name), plain) end
case("where", { { 64, 64, chance = 0.5 }, square, square }, function(m, a, b) return m:where(a, b) end)
case("masked_fill", { square, { 64, 64, chance = 0.3 } }, function(x, m) return x:masked_fill(m, 0.25) end)
case("a chain of operations", { square, square }, function(a, b) return ((a * b + 1):tanh() * a - b):sigmoid() * 2 end)

-- Whole numbers.
local whole = { types = "whole", exact = true, plain = true }
local few, some = { 64, 64, ids = 8 }, { 64, 64, ids = 8, from = 1 }
for _, name in ipairs { "add", "mul", "maximum", "minimum", "lt", "eq", "ge", "bitwise_and", "bitwise_or",
  "bitwise_xor" } do
  case(name .. " of integers", { few, some }, call(name), whole)
end
case("sub of integers", { some, few }, function(a, b) return a + 8 - b end, whole)
case("floor_divide of integers", { few, some }, call "floor_divide", whole)
case("remainder of integers", { few, some }, call "remainder", whole)
case("division of integers", { few, some }, call "div", { types = "whole", plain = true })
case("sum of integers", { few }, call("sum", 2), whole)
case("cumsum of integers", { few }, call("cumsum", 2), { types = "wide", exact = true, plain = true })
case("largest integers", { few }, call("max", 1), whole)
case("argmax of integers", { few }, call("argmax", 2), whole)
case("sort of integers", { few }, call("sort", 2), whole)
case("transposed integers", { few }, function(x) return x:transpose(1, 2):contiguous() end, whole)
case("integers as f32", { few }, function(x) return x:to "f32" end, whole)
case("one_hot", { { 33, ids = 8 } }, call("one_hot", 8), { types = "wide", exact = true, plain = true })
local chances = { 64, 64, chance = 0.5 }
for _, name in ipairs { "logical_and", "logical_or", "logical_xor" } do
  case(name, { chances, chances }, call(name), { types = "wide", exact = true, plain = true })
end

-- Sums, orders, normalisation.
for _, name in ipairs { "sum", "mean", "norm", "logsumexp" } do case(name .. " of all", { square }, call(name)) end
for _, dim in ipairs { 1, 2 } do
  for _, name in ipairs { "sum", "mean", "max", "min", "var", "std", "logsumexp", "softmax", "log_softmax",
    "cumsum" } do
    case(("%s along %d"):format(name, dim), { square }, call(name, dim))
  end
end
case("sum of many", { { 3, 50000 } }, call("sum", 2))
case("softmax of long rows", { { 4, 9000 } }, call("softmax", 2))
case("prod", { { 64, 6, low = 0.5, high = 1.5 } }, call("prod", 2))
case("argmax", { { 64, 64, distinct = true } }, call("argmax", 2), plain)
case("all", { { 64, 64, chance = 0.98 } }, call("all", 2), { types = "single", plain = true })
case("any", { { 64, 64, chance = 0.02 } }, call("any", 2), { types = "single", plain = true })
case("sort", { { 64, 64, distinct = true } }, call("sort", 2))
case("sort, descending along 1", { { 2, 40, 64, distinct = true } },
  function(x) return x:sort(3, { descending = true }) end)
case("argsort", { { 64, 64, distinct = true } }, call("argsort", 2), plain)
case("topk", { { 64, 64, distinct = true } }, function(x) return x:topk(7, 2) end)
case("layer_norm", { square, { 64 }, { 64 } }, function(x, w, b) return x:layer_norm(w, b) end)
case("layer_norm of wide rows", { { 8, 1600 } }, call "layer_norm")
case("rms_norm", { square, { 64 } }, call "rms_norm")
case("batch_norm", { { 8, 6, 9, 9 }, { 6 }, { 6 } }, function(x, w, b) return x:batch_norm(w, b) end)
case("group_norm", { { 4, 8, 9, 9 }, { 8 }, { 8 } }, function(x, w, b) return x:group_norm(2, w, b) end)

-- Shapes, places.
case("permute", { { 5, 6, 7 } }, function(x) return x:permute(3, 1, 2):contiguous() end)
case("narrow", { square }, function(x) return x:narrow(1, 3, 5):contiguous() end)
case("cat", { square, square }, function(a, b) return a:cat({ b }, 1) end)
case("stack", { square, square }, function(a, b) return a:stack({ b }, 2) end)
case("tril", { square }, call "tril")
case("flip", { square }, call("flip", 2))
case("roll", { square }, call("roll", 5, 2))
case("pad", { square }, call("pad", { 1, 2, 3, 0 }, 0.5))
case("repeat_interleave", { square }, call("repeat_interleave", 3, 1))
case("gather", { square, { 20, 64, ids = 64 } }, function(x, i) return x:gather(1, i) end)
case("scatter", { square, { 64, 20, distinct = "places" }, { 64, 20 } },
  function(x, i, s) return x:scatter(2, i, s) end)
case("scatter_add", { square, { 64, 20, ids = 64 }, { 64, 20 } },
  function(x, i, s) return x:scatter_add(2, i, s) end)
case("index_select", { square, { 90, ids = 64 } }, function(x, i) return x:index_select(1, i) end)
case("embedding", { { 4, 33, ids = 50 }, { 50, 48 } }, call "embedding")

-- Products.
case("matmul", { square, square }, call "matmul")
case("matmul of odd sizes", { { 37, 53 }, { 53, 29 } }, call "matmul")
case("matmul, both turned", { square, square },
  function(a, b) return a:transpose(1, 2):matmul(b:transpose(1, 2)) end)
case("matmul in batches", { { 3, 5, 32, 48 }, { 3, 5, 48, 16 } }, call "matmul")
case("matmul in batches, one operand shared", { { 6, 32, 48 }, { 48, 16 } }, call "matmul")
case("einsum", { { 4, 8, 16 }, { 4, 16, 12 } }, function(a, b) return a:einsum("bij,bjk->bik", b) end)
local affine = { { 40, 64 }, { 96, 64 }, { 96 } }
case("linear", affine, function(x, w, b) return x:linear(w, b) end)
case("linear without bias", { { 4, 10, 64 }, { 96, 64 } }, call "linear")
case("linear with relu", affine, function(x, w, b) return x:linear(w, b):relu() end)
case("linear with gelu", affine, function(x, w, b) return x:linear(w, b):gelu() end, { loose = 2 })

-- Losses.
case("cross_entropy", { { 40, 97 }, { 40, ids = 97 } }, call "cross_entropy")
case("cross_entropy, smoothed", { { 40, 97 }, { 40, ids = 97 } },
  function(x, y) return x:cross_entropy(y, { label_smoothing = 0.1, ignore_index = 3 }) end)
case("nll_loss", { { 40, 97 }, { 40, ids = 97 } }, function(x, y) return x:log_softmax(2):nll_loss(y) end)
case("mse_loss", { square, square }, call "mse_loss")
case("binary_cross_entropy_with_logits", { square, within(0, 1) }, call "binary_cross_entropy_with_logits")

-- Images, sequences, transforms.
case("conv2d", { { 2, 8, 12, 12 }, { 16, 8, 3, 3 }, { 16 } },
  function(x, w, b) return x:conv2d(w, b, { padding = 1 }) end)
case("conv2d, stride and groups", { { 2, 8, 13, 11 }, { 16, 4, 3, 3 } },
  function(x, w) return x:conv2d(w, nil, { stride = 2, groups = 2 }) end)
case("conv1d", { { 3, 6, 40 }, { 10, 6, 5 }, { 10 } },
  function(x, w, b) return x:conv1d(w, b, { padding = 2, dilation = 2 }) end)
local image = { 2, 3, 12, 12 }
case("max_pool2d", { { 2, 3, 12, 12, distinct = true } }, call("max_pool2d", 3, { stride = 2 }))
case("avg_pool2d", { image }, call("avg_pool2d", 2))
case("adaptive_avg_pool2d", { image }, call("adaptive_avg_pool2d", 5, 4))
local single = { types = "single" }
case("fft", { { 6, 32, 2 } }, call "fft", single)
case("ifft", { { 6, 30, 2 } }, call "ifft", single)
case("fft2", { { 3, 8, 16, 2 } }, call "fft2", single)
case("rfft", { { 6, 48 } }, call "rfft", single)
case("ifft2", { { 3, 8, 16, 2 } }, call "ifft2", single)
case("rfft2", { { 3, 8, 16 } }, call "rfft2", single)
case("irfft2", { { 3, 8, 9, 2 } }, call "irfft2", single)
case("irfft", { { 6, 17, 2 } }, call "irfft", single)

-- Attention: heads of 16 by the general kernel, 64 and 128 by the flash one in the half types.
local function attend(options)
  return function(q, k, v, extra)
    local o = {}
    for key, value in pairs(options) do o[key] = value end
    if o.with then o[o.with], o.with = extra, nil end
    return q:scaled_dot_product_attention(k, v, o)
  end
end
for _, d in ipairs { 16, 64, 128 } do
  local q, k = { 2, 2, 70, d }, { 2, 2, 90, d }
  local function one(what, inputs, options)
    case(("attention, heads of %d%s"):format(d, what), inputs, attend(options), { types = "attended", loose = 2 })
  end
  one("", { q, k, k }, {})
  one(", causal", { q, q, q }, { causal = true })
  one(", causal with earlier keys", { q, k, k }, { causal = true })
  one(", grouped", { q, { 2, 1, 70, d }, { 2, 1, 70, d } }, { causal = true })
  one(", masked", { q, k, k, { 2, 1, 70, 90, chance = 0.7 } }, { with = "mask" })
  one(", lengths", { q, k, k, { 2, ids = 80, from = 10 } }, { with = "lengths" })
end
case("rope", { { 2, 4, 20, 16 } }, function(x)
  return x:rope(rille.device(x.device):rope_angles { 20, 16, dtype = x.dtype == "f64" and "f64" or "f32" })
end)

-- Random numbers: the same Philox numbers on every device.
local drawn = { drawn = true, plain = true }
case("rand", {}, function(dev, dtype) return dev:rand { 1000, dtype = dtype } end, drawn)
case("randn", {}, function(dev, dtype) return dev:randn { 1000, dtype = dtype } end, drawn)
case("randint", {}, function(dev) return dev:randint { 1000, low = -5, high = 90 } end,
  { drawn = true, plain = true, types = "single" })
case("dropout", { square }, function(x) return x:dropout(0.3) end, { drawn = true })

return { list = list, types = types }
