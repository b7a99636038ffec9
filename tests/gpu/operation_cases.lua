-- The operations, each declared once: a list of { name, inputs, function, options }. operations.lua holds values and
-- gradients against float64 and finite differences, on the CPU and on a GPU; speed.lua measures them.
-- inputs: { size, .., low =, high = } (-2, 2) of the type that is tested; or with `ids = N` (whole numbers below N,
--   i64), `chance = p` (bool), `distinct` (each row some order of 0 .. its length - 1, so that nothing is equal);
--   `large`: its shape when speed is measured, of numbers and sizes(), with `ids` if these differ, too.
-- function: called with the inputs; a string: the method of that name, in PyTorch as well.
-- options: types = a key of `types` below, "float" by default; plain = true: no gradients; exact = true: the same bits
--   as the CPU's in the same type; drawn = true: after both devices were seeded alike, and beside the CPU in the same
--   type (without inputs it is called with device, type and, for its speed, `count`); loose: what the bound is
--   multiplied by. torch: the same in PyTorch, an expression of its inputs x, y, z, w (or of dt and n); none: it has no
--   obvious peer. terms(shape, ..): FLOPs for each element of the result; the floor is all of them at the rate of a
--   product, without terms the bytes at the rate of a triad. moved: which bytes: inputs and results, each once;
--   "result": the results twice; "written": the results once.
local rille = require "rille"

local types = {
  float = { "f32", "bf16", "f16", "f64" },
  single = { "f32", "f64" },
  whole = { "i64", "i32", "i8", "u8" },
  wide = { "i64", "i32" },                        -- where small types would overflow
  attended = { "f32", "bf16", "f16" },
}

-- A size of a large shape: in tests, on a CPU, on a GPU.
local function sizes(tiny, cpu, gpu) return { tiny = tiny, cpu = cpu, gpu = gpu } end

-- The method of that name; numbers and tables after the tensors.
local function call(name, ...)
  local constants = { ... }
  return function(x, ...)
    local given = { ... }
    for _, constant in ipairs(constants) do given[#given + 1] = constant end
    return x[name](x, unpack(given))
  end
end

local list = {}
local function case(name, inputs, fn, options)
  local one = { name = name, inputs = inputs, fn = fn, options = {} }
  for key, value in pairs(options or {}) do one.options[key] = value end
  if type(fn) == "string" then
    one.fn = call(fn)
    one.options.torch = one.options.torch or ("x.%s(%s)"):format(fn, inputs[2] and "y" or "")
  end
  for i, input in ipairs(inputs) do assert(input.large, ("%s: input %d has no large shape"):format(name, i)) end
  assert(inputs[1] or one.options.count, name .. ": no size for its speed")
  list[#list + 1] = one
end
local function peer(expression, ...) return { torch = expression:format(...) } end
-- The options of `base` and these.
local function with(base, more)
  local o = {}
  for _, given in ipairs { base, more } do for key, value in pairs(given) do o[key] = value end end
  return o
end

local rows, wide, side, narrow = sizes(8, 1024, 8192), sizes(32, 4096, 4096), sizes(32, 1024, 8192),
  sizes(8, 1024, 1024)
local big = { rows, wide }
local plain = { plain = true }
local square, row = { 64, 64, large = big }, { 64, large = { wide } }
local function within(low, high) return { 64, 64, low = low, high = high, large = big } end

-- Element by element.
for _, name in ipairs { "add", "sub", "mul", "atan2", "maximum", "minimum" } do case(name, { square, square }, name) end
case("add, alpha", { square, square }, call("add", 0.5), peer "torch.add(x, y, alpha=0.5)")
case("sub, alpha", { square, square }, call("sub", 0.5), peer "torch.sub(x, y, alpha=0.5)")
case("add, broadcast", { square, row }, "add")
case("mul, broadcast", { { 8, 1, 64, large = { sizes(2, 32, 256), 1, wide } },
  { 16, 1, large = { sizes(4, 32, 32), 1 } } }, "mul")
case("add, turned", { { 64, 64, large = { wide, rows } }, square }, function(a, b) return a:transpose(1, 2) + b end,
  peer "x.t() + y")
case("div", { square, within(0.5, 2) }, "div")
case("pow", { within(0.5, 2), square }, "pow")
case("pow, a number", { within(0.5, 2) }, call("pow", 3), peer "x ** 3")
for _, name in ipairs { "neg", "abs", "exp", "exp2", "expm1", "square", "sin", "cos", "atan", "sinh", "cosh", "tanh",
  "erf", "sigmoid", "relu" } do
  case(name, { square }, name)
end
for _, name in ipairs { "silu", "leaky_relu", "elu", "softplus", "hardswish", "hardsigmoid" } do
  case(name, { square }, name, peer("F.%s(x)", name))
end
for _, name in ipairs { "log", "log2", "log10", "log1p", "rsqrt", "sqrt", "reciprocal" } do
  case(name, { within(0.5, 4) }, name)
end
case("tan", { within(-1, 1) }, "tan")
case("asin", { within(-0.9, 0.9) }, "asin")
case("acos", { within(-0.9, 0.9) }, "acos")
case("gelu", { square }, "gelu", peer "F.gelu(x, approximate='tanh')")
case("gelu, exact", { square }, call("gelu", "none"), peer "F.gelu(x)")
case("clamp", { square }, call("clamp", -0.5, 0.5), peer "x.clamp(-0.5, 0.5)")
for _, name in ipairs { "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "logical_not" } do
  case(name, { square }, name, plain)
end
for _, name in ipairs { "lt", "le", "gt", "ge", "eq", "ne" } do case(name, { square, square }, name, plain) end
local function chances(p) return { 64, 64, chance = p, large = big } end
case("where", { chances(0.5), square, square }, "where", peer "torch.where(x, y, z)")
case("masked_fill", { square, chances(0.3) }, function(x, m) return x:masked_fill(m, 0.25) end,
  peer "x.masked_fill(y, 0.25)")
case("a chain of operations", { square, square }, function(a, b) return ((a * b + 1):tanh() * a - b):sigmoid() * 2 end,
  peer "((x * y + 1).tanh() * x - y).sigmoid() * 2")

-- Whole numbers.
local whole = { types = "whole", exact = true, plain = true }
local counted = { types = "wide", exact = true, plain = true }
local few, some = { 64, 64, ids = 8, large = big }, { 64, 64, ids = 8, from = 1, large = big }
for _, name in ipairs { "add", "mul", "maximum", "minimum", "lt", "eq", "ge", "bitwise_and", "bitwise_or",
  "bitwise_xor", "floor_divide", "remainder" } do
  case(name .. " of integers", { few, some }, name, whole)
end
case("bitwise_not of integers", { few }, "bitwise_not", whole)
case("sub of integers", { some, few }, function(a, b) return a + 8 - b end, with(whole, peer "x + 8 - y"))
case("division of integers", { few, some }, "div", { types = "whole", plain = true })
case("sum of integers", { few }, call("sum", 2), with(whole, peer "x.sum(1)"))
case("cumsum of integers", { few }, call("cumsum", 2), with(counted, peer "x.cumsum(1)"))
case("largest integers", { few }, call("max", 1), with(whole, peer "x.max(0)"))
case("argmax of integers", { few }, call("argmax", 2), with(whole, peer "x.argmax(1)"))
case("sort of integers", { few }, call("sort", 2), with(whole, peer "x.sort(dim=1, stable=True)"))
case("transposed integers", { few }, function(x) return x:transpose(1, 2):contiguous() end,
  with(whole, peer "x.t().contiguous()"))
case("integers as f32", { few }, function(x) return x:to "f32" end, with(whole, peer "x.float()"))
case("one_hot", { { 33, ids = 8, large = { sizes(64, 2 ^ 20, 2 ^ 24) } } }, call("one_hot", 8),
  with(counted, peer "F.one_hot(x, 8)"))
for _, name in ipairs { "logical_and", "logical_or", "logical_xor" } do
  case(name, { chances(0.5), chances(0.5) }, name, counted)
end

-- Sums, orders, normalisation.
for _, name in ipairs { "sum", "mean", "norm" } do case(name .. " of all", { square }, name) end
case("logsumexp of all", { square }, "logsumexp", peer "x.logsumexp((0, 1))")
for _, dim in ipairs { 1, 2 } do
  for _, name in ipairs { "sum", "mean", "max", "min", "var", "std", "logsumexp", "softmax", "log_softmax",
    "cumsum" } do
    case(("%s along %d"):format(name, dim), { square }, call(name, dim), peer("x.%s(%d)", name, dim - 1))
  end
end
case("sum of many", { { 3, 50000, large = { 4, sizes(1000, 2 ^ 20, 2 ^ 24) } } }, call("sum", 2), peer "x.sum(1)")
case("softmax of long rows", { { 4, 9000, large = { sizes(2, 64, 512), sizes(100, 65536, 65536) } } },
  call("softmax", 2), peer "x.softmax(1)")
case("prod", { { 64, 6, low = 0.5, high = 1.5, large = { sizes(8, 2 ^ 18, 2 ^ 22), 6 } } }, call("prod", 2),
  peer "x.prod(1)")
local distinct = { 64, 64, distinct = true, large = big }
for _, name in ipairs { "argmax", "argmin" } do
  case(name, { distinct }, call(name, 2), with(plain, peer("x.%s(1)", name)))
end
local single = { types = "single", plain = true }
case("argmax along 1", { distinct }, call("argmax", 1), with(plain, peer "x.argmax(0)"))
case("all", { chances(0.98) }, call("all", 2), with(single, peer "x.all(1)"))
case("any", { chances(0.02) }, call("any", 2), with(single, peer "x.any(1)"))
case("sort", { distinct }, call("sort", 2), peer "x.sort(dim=1, stable=True)")
case("sort, descending along 1",
  { { 2, 40, 64, distinct = true, large = { sizes(2, 64, 512), sizes(2, 64, 64), narrow } } },
  function(x) return x:sort(3, { descending = true }) end, peer "x.sort(dim=2, stable=True, descending=True)")
case("argsort", { distinct }, call("argsort", 2), with(plain, peer "x.argsort(dim=1, stable=True)"))
case("topk", { distinct }, function(x) return x:topk(7, 2) end, peer "x.topk(7, 1)")
case("layer_norm", { square, row, row }, function(x, w, b) return x:layer_norm(w, b) end,
  peer "F.layer_norm(x, y.shape, y, z)")
case("layer_norm of wide rows", { { 8, 1600, large = { sizes(4, 2048, 16384), 1600 } } }, "layer_norm",
  peer "F.layer_norm(x, x.shape[1:])")
case("rms_norm", { square, row }, "rms_norm", peer "F.rms_norm(x, y.shape, y, 1e-6)")
local channels = sizes(2, 64, 64)
local pictures = { sizes(1, 16, 256), channels, sizes(5, 56, 56), sizes(4, 56, 56) }
case("conv_transpose2d", { { 4, 6, 9, 9, large = pictures }, { 6, 5, 3, 3, large = { channels, channels, 3, 3 } },
  { 5, large = { channels } } },
  function(x, w, b) return x:conv_transpose2d(w, b, { stride = 2, padding = 1, output_padding = 1 }) end,
  peer "F.conv_transpose2d(x, y, z, stride=2, padding=1, output_padding=1)")
case("interpolate nearest", { { 4, 6, 9, 9, large = pictures } },
  function(x) return x:interpolate { scale = 2 } end, peer "F.interpolate(x, scale_factor=2)")
case("interpolate bilinear", { { 4, 6, 9, 7, large = pictures } },
  function(x) return x:interpolate { scale = 1.5, mode = "bilinear" } end,
  peer "F.interpolate(x, scale_factor=1.5, mode='bilinear')")
case("batch_norm", { { 8, 6, 9, 9, large = pictures }, { 6, large = { channels } }, { 6, large = { channels } } },
  function(x, w, b) return x:batch_norm(w, b) end, peer "F.batch_norm(x, None, None, y, z, True)")
case("group_norm", { { 4, 8, 9, 9, large = pictures }, { 8, large = { channels } }, { 8, large = { channels } } },
  function(x, w, b) return x:group_norm(2, w, b) end, peer "F.group_norm(x, 2, y, z)")

-- Shapes, places.
local result, written = { moved = "result" }, { moved = "written" }
case("clone", { square }, "clone")
case("permute", { { 5, 6, 7, large = { sizes(2, 16, 128), sizes(8, 512, 512), sizes(16, 512, 512) } } },
  function(x) return x:permute(3, 1, 2):contiguous() end, peer "x.permute(2, 0, 1).contiguous()")
case("reshape of a turned one", { square }, function(x) return x:transpose(1, 2):reshape(-1) end,
  peer "x.t().reshape(-1)")
case("expand", { { 64, 1, large = { sizes(8, 2 ^ 14, 2 ^ 17), 1 } } },
  function(x) return x:expand(-1, 256):contiguous() end, peer "x.expand(-1, 256).contiguous()")
case("narrow", { square }, function(x) return x:narrow(2, 3, math.floor(x:size(2) / 2)):contiguous() end,
  with(result, peer "x.narrow(1, 2, x.shape[1] // 2).contiguous()"))
case("slice in steps", { square }, function(x) return x[{ { 2, -1, 3 }, { 1, -1, 2 } }]:contiguous() end,
  with(result, peer "x[1::3, ::2].contiguous()"))
case("cat", { square, square }, function(a, b) return a:cat({ b }, 1) end, peer "torch.cat([x, y], 0)")
case("stack", { square, square }, function(a, b) return a:stack({ b }, 2) end, peer "torch.stack([x, y], 1)")
case("tile", { square }, call("tile", 2, 1), peer "x.tile(2, 1)")
case("tril", { square }, "tril")
case("triu", { square }, "triu")
case("flip", { square }, call("flip", 2), peer "x.flip(1)")
case("roll", { square }, call("roll", 5, 2), peer "x.roll(5, 1)")
case("pad", { square }, call("pad", { 1, 2, 3, 0 }, 0.5), peer "F.pad(x, (1, 2, 3, 0), value=0.5)")
case("repeat_interleave", { square }, call("repeat_interleave", 3, 1), peer "x.repeat_interleave(3, 0)")
case("full_like", { square }, call("full_like", 0.5), with(plain, with(written, peer "torch.full_like(x, 0.5)")))
case("gather", { square, { 20, 64, ids = 64, large = { narrow, wide, ids = rows } } },
  function(x, i) return x:gather(1, i) end, with(result, peer "x.gather(0, y)"))
case("scatter", { square, { 64, 20, distinct = "places", large = { rows, sizes(8, 512, 512) } },
  { 64, 20, large = { rows, sizes(8, 512, 512) } } },
  function(x, i, s) return x:scatter(2, i, s) end, peer "x.scatter(1, y, z)")
case("scatter_add", { square, { 64, 20, ids = 64, large = { rows, narrow, ids = wide } },
  { 64, 20, large = { rows, narrow } } },
  function(x, i, s) return x:scatter_add(2, i, s) end, peer "x.scatter_add(1, y, z)")
case("index_add", { square, { 90, ids = 64, large = { rows, ids = rows } }, { 90, 64, large = { rows, big[2] } } },
  function(x, i, s) return x:index_add(1, i, s) end, peer "x.index_add(0, y, z)")
case("index_copy", { square, { 64, distinct = "places", large = { rows } }, square },
  function(x, i, s) return x:index_copy(1, i, s) end, peer "x.index_copy(0, y, z)")
case("index_select", { square, { 90, ids = 64, large = { rows, ids = rows } } },
  function(x, i) return x:index_select(1, i) end, with(result, peer "x.index_select(0, y)"))
case("masked_select", { square, { 64, 64, chance = 0.5, large = big } }, function(x, m) return x:masked_select(m) end,
  with(result, peer "x.masked_select(y)"))
case("nonzero", { { 64, 64, chance = 0.5, large = big } }, "nonzero", { types = "wide", exact = true, plain = true })
local words = sizes(50, 50257, 50257)
case("embedding", { { 4, 33, ids = 50, large = { sizes(2, 8, 64), narrow, ids = words } },
  { 50, 48, large = { words, sizes(32, 768, 768) } } }, "embedding", with(result, peer "F.embedding(x, y)"))
case("embedding, few words", { { 4, 33, ids = 3, large = { sizes(2, 8, 64), narrow, ids = 3 } },
  { 50, 48, large = { words, sizes(32, 768, 768) } } }, "embedding", with(result, peer "F.embedding(x, y)"))

-- Products.
local function product(torch) return { torch = torch, terms = function(a) return 2 * a[#a] end } end
local matrix = { 64, 64, large = { side, side } }
case("matmul", { matrix, matrix }, "matmul", product())
case("matmul of odd sizes", { { 37, 53, large = { sizes(7, 1023, 4095), sizes(13, 777, 3333) } },
  { 53, 29, large = { sizes(13, 777, 3333), sizes(5, 515, 2051) } } }, "matmul", product())
case("matmul, both turned", { matrix, matrix },
  function(a, b) return a:transpose(1, 2):matmul(b:transpose(1, 2)) end, product "x.t().matmul(y.t())")
local group, heads, length = sizes(1, 2, 16), sizes(2, 12, 16), sizes(8, 512, 1024)
case("matmul in batches", { { 3, 5, 32, 48, large = { group, heads, length, 64 } },
  { 3, 5, 48, 16, large = { group, heads, 64, length } } }, "matmul", product())
case("matmul in batches, one operand shared", { { 6, 32, 48, large = { sizes(2, 8, 64), narrow, 512 } },
  { 48, 16, large = { 512, 512 } } }, "matmul", product())
case("einsum", { { 4, 8, 16, large = { sizes(2, 16, 64), sizes(4, 256, 1024), 128 } },
  { 4, 16, 12, large = { sizes(2, 16, 64), 128, sizes(4, 256, 1024) } } },
  function(a, b) return a:einsum("bij,bjk->bik", b) end, product "torch.einsum('bij,bjk->bik', x, y)")
local thin, thick = sizes(16, 768, 4096), sizes(16, 3072, 16384)
local affine = { { 40, 64, large = { sizes(8, 512, 8192), thin } }, { 96, 64, large = { thick, thin } },
  { 96, large = { thick } } }
case("linear", affine, function(x, w, b) return x:linear(w, b) end, product "F.linear(x, y, z)")
case("linear without bias", { { 4, 10, 64, large = { sizes(2, 4, 16), sizes(2, 128, 512), thin } },
  { 96, 64, large = { thick, thin } } }, "linear", product "F.linear(x, y)")
case("linear with relu", affine, function(x, w, b) return x:linear(w, b):relu() end,
  product "F.linear(x, y, z).relu()")
case("linear with gelu", affine, function(x, w, b) return x:linear(w, b):gelu() end,
  with(product "F.gelu(F.linear(x, y, z), approximate='tanh')", { loose = 2 }))

-- Losses.
local vocabulary = sizes(16, 50257, 50257)
local logits = { 40, 97, large = { sizes(8, 256, 4096), vocabulary } }
local labels = { 40, ids = 97, large = { sizes(8, 256, 4096), ids = vocabulary } }
case("cross_entropy", { logits, labels }, "cross_entropy", peer "F.cross_entropy(x, y)")
case("cross_entropy, smoothed", { logits, labels },
  function(x, y) return x:cross_entropy(y, { label_smoothing = 0.1, ignore_index = 3 }) end,
  peer "F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=3)")
local class_weights = { 97, low = 0.5, high = 2, large = { vocabulary } }
case("cross_entropy, weighted", { logits, labels, class_weights }, function(x, y, w)
  return x:cross_entropy(y, { weight = w, label_smoothing = 0.1, ignore_index = 3 })
end, peer "F.cross_entropy(x, y, weight=z.detach(), label_smoothing=0.1, ignore_index=3)")
case("cross_entropy of each", { logits, labels }, function(x, y) return x:cross_entropy(y, { reduction = "none" }) end,
  peer "F.cross_entropy(x, y, reduction='none')")
case("nll_loss", { logits, labels }, function(x, y) return x:log_softmax(2):nll_loss(y) end,
  peer "F.nll_loss(x.log_softmax(1), y)")
case("mse_loss", { square, square }, "mse_loss", peer "F.mse_loss(x, y)")
case("l1_loss", { square, square }, "l1_loss", peer "F.l1_loss(x, y)")
case("smooth_l1_loss", { square, square }, "smooth_l1_loss", peer "F.smooth_l1_loss(x, y)")
case("binary_cross_entropy_with_logits", { square, within(0, 1) }, "binary_cross_entropy_with_logits",
  peer "F.binary_cross_entropy_with_logits(x, y)")

-- Images, sequences, transforms.
local function convolution(torch)
  return { torch = torch, terms = function(_, w) return 2 * w[2] * w[3] * (w[4] or 1) end }
end
local many = sizes(2, 64, 128)
local photos = { sizes(1, 8, 64), many, sizes(5, 56, 56), sizes(6, 56, 56) }
case("conv2d", { { 2, 8, 12, 12, large = photos }, { 16, 8, 3, 3, large = { many, many, 3, 3 } },
  { 16, large = { many } } }, function(x, w, b) return x:conv2d(w, b, { padding = 1 }) end,
  convolution "F.conv2d(x, y, z, padding=1)")
case("conv2d, stride and groups", { { 2, 8, 13, 11, large = photos },
  { 16, 4, 3, 3, large = { many, sizes(1, 32, 64), 3, 3 } } },
  function(x, w) return x:conv2d(w, nil, { stride = 2, groups = 2 }) end,
  convolution "F.conv2d(x, y, stride=2, groups=2)")
case("conv1d", { { 3, 6, 40, large = { sizes(1, 8, 64), many, sizes(16, 2048, 4096) } },
  { 10, 6, 5, large = { many, many, 5 } }, { 10, large = { many } } },
  function(x, w, b) return x:conv1d(w, b, { padding = 2, dilation = 2 }) end,
  convolution "F.conv1d(x, y, z, padding=2, dilation=2)")
local image = { 2, 3, 12, 12, large = { sizes(1, 16, 256), channels, sizes(7, 112, 112), sizes(8, 112, 112) } }
case("max_pool2d", { { 2, 3, 12, 12, distinct = true, large = image.large } },
  call("max_pool2d", 3, { stride = 2 }), peer "F.max_pool2d(x, 3, stride=2)")
local tones = { sizes(1, 8, 64), many, sizes(16, 2048, 4096) }
case("max_pool1d", { { 3, 6, 40, distinct = true, large = tones } }, call("max_pool1d", 3, { stride = 2 }),
  peer "F.max_pool1d(x, 3, stride=2)")
case("avg_pool1d", { { 3, 6, 40, large = tones } }, call("avg_pool1d", 4, { stride = 2, padding = 1 }),
  peer "F.avg_pool1d(x, 4, stride=2, padding=1)")
case("adaptive_max_pool1d", { { 3, 6, 40, distinct = true, large = tones } }, call("adaptive_max_pool1d", 7),
  peer "F.adaptive_max_pool1d(x, 7)")
case("adaptive_avg_pool1d", { { 3, 6, 40, large = tones } }, call("adaptive_avg_pool1d", 7),
  peer "F.adaptive_avg_pool1d(x, 7)")
case("avg_pool2d", { image }, call("avg_pool2d", 2), peer "F.avg_pool2d(x, 2)")
case("max_pool2d, the last window too", { { 2, 3, 12, 11, distinct = true, large = image.large } },
  call("max_pool2d", 3, { stride = 2, padding = 1, ceil_mode = true }),
  peer "F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)")
case("avg_pool2d, the last window too", { image },
  call("avg_pool2d", 3, { stride = 2, padding = 1, ceil_mode = true, count_include_pad = false }),
  peer "F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)")
case("adaptive_max_pool2d", { { 2, 3, 12, 12, distinct = true, large = image.large } },
  call("adaptive_max_pool2d", 5, 4), peer "F.adaptive_max_pool2d(x, (5, 4))")
case("adaptive_avg_pool2d", { image }, call("adaptive_avg_pool2d", 5, 4), peer "F.adaptive_avg_pool2d(x, (5, 4))")
-- Complex numbers are pairs in the last dimension.
local function transform(name, of, back)
  return { types = "single", torch = ("%s(torch.fft.%s(%s(x)))"):format(back and "torch.view_as_real" or "", name,
    of and "torch.view_as_complex" or "") }
end
local lines, plane = sizes(2, 1024, 8192), sizes(4, 512, 512)
local planes = sizes(1, 4, 32)
case("fft", { { 6, 32, 2, large = { lines, narrow, 2 } } }, "fft", transform("fft", true, true))
case("ifft", { { 6, 30, 2, large = { lines, sizes(15, 1000, 1000), 2 } } }, "ifft", transform("ifft", true, true))
case("rfft", { { 6, 48, large = { lines, sizes(16, 2048, 2048) } } }, "rfft", transform("rfft", false, true))
case("rfft, zeros added", { { 6, 40, large = { lines, sizes(16, 1500, 1500) } } }, call("rfft", 48),
  { types = "single", torch = "torch.view_as_real(torch.fft.rfft(x, 48))" })
case("rfft, by the root of its size", { { 6, 48, large = { lines, sizes(16, 2048, 2048) } } },
  call("rfft", { norm = "ortho" }),
  { types = "single", torch = "torch.view_as_real(torch.fft.rfft(x, norm='ortho'))" })
case("irfft", { { 6, 17, 2, large = { lines, sizes(9, 1025, 1025), 2 } } }, "irfft", transform("irfft", true, false))
case("fft2", { { 3, 8, 16, 2, large = { planes, plane, plane, 2 } } }, "fft2", transform("fft2", true, true))
case("ifft2", { { 3, 8, 16, 2, large = { planes, plane, plane, 2 } } }, "ifft2", transform("ifft2", true, true))
case("rfft2", { { 3, 8, 16, large = { planes, plane, plane } } }, "rfft2", transform("rfft2", false, true))
case("irfft2", { { 3, 8, 9, 2, large = { planes, plane, sizes(3, 257, 257), 2 } } }, "irfft2",
  transform("irfft2", true, false))

-- Attention: heads of 16 by the general kernel, 64 and 128 by the flash one in the half types.
local function attend(options)
  return function(q, k, v, extra)
    local o = {}
    for key, value in pairs(options) do o[key] = value end
    if o.with then o[o.with], o.with = extra, nil end
    return q:scaled_dot_product_attention(k, v, o)
  end
end
local batch, queries, keys = sizes(1, 2, 8), sizes(12, 512, 2048), sizes(16, 512, 2048)
for _, d in ipairs { 16, 64, 128 } do
  local q, k = { 2, 2, 70, d, large = { batch, heads, queries, d } }, { 2, 2, 90, d, large = { batch, heads, keys, d } }
  local shared = { 2, 1, 70, d, large = { batch, 1, queries, d } }
  local function one(what, inputs, options, torch)
    local seen = options.causal and 0.5 or 1     -- of the products, when there are as many keys as queries
    case(("attention, heads of %d%s"):format(d, what), inputs, attend(options), { types = "attended", loose = 2,
      torch = torch and ("F.scaled_dot_product_attention(x, y, z%s)"):format(torch),
      terms = function(_, of) return 4 * of[3] * seen end })
  end
  one("", { q, k, k }, {}, "")
  one(", causal", { q, q, q }, { causal = true }, ", is_causal=True")
  one(", causal with earlier keys", { q, k, k }, { causal = true })
  one(", grouped", { q, shared, shared }, { causal = true }, ", is_causal=True, enable_gqa=True")
  one(", masked", { q, k, k, { 2, 1, 70, 90, chance = 0.7, large = { batch, 1, queries, keys } } },
    { with = "mask" }, ", attn_mask=w")
  one(", lengths", { q, k, k, { 2, ids = 80, from = 10, large = { batch, ids = keys } } }, { with = "lengths" })
end
local angles = {}                                -- made once for each device, length, width and type
case("rope", { { 2, 4, 20, 16, large = { sizes(1, 4, 16), heads, length, 64 } } }, function(x)
  local length_, width, dtype = x:size(3), x:size(4), x.dtype == "f64" and "f64" or "f32"
  local key = ("%s %d %d %s"):format(x.device, length_, width, dtype)
  angles[key] = angles[key] or { rille.device(x.device):rope_angles { length_, width, dtype = dtype } }
  return x:rope(unpack(angles[key]))
end)

-- Random numbers: the same Philox numbers on every device.
local drawn = { drawn = true, plain = true, count = sizes(1000, 2 ^ 22, 2 ^ 25) }
case("rand", {}, function(dev, dtype, n) return dev:rand { n or 1000, dtype = dtype } end,
  with(drawn, peer "torch.rand(n, dtype=dt)"))
case("randn", {}, function(dev, dtype, n) return dev:randn { n or 1000, dtype = dtype } end,
  with(drawn, peer "torch.randn(n, dtype=dt)"))
case("randint", {}, function(dev, _, n) return dev:randint { n or 1000, low = -5, high = 90 } end,
  with(drawn, with({ types = "single" }, peer "torch.randint(-5, 90, (n,))")))
case("dropout", { square }, function(x) return x:dropout(0.3) end, { drawn = true, torch = "F.dropout(x, 0.3)" })

-- An input of a case on a device, of this shape.
local function draw(dev, input, shape, dtype, ids)
  if input.chance then return dev:rand(shape):lt(input.chance) end
  if input.distinct then
    local order = dev:rand(shape):argsort()
    return input.distinct == "places" and order or order:to(dtype)
  end
  local whole_type = dtype:match "^[iu]%d"
  if input.ids then
    shape.low, shape.high = input.from or 0, ids or input.ids
    local drawn_ids = dev:randint(shape)
    return whole_type and drawn_ids:to(dtype) or drawn_ids
  end
  local low, high = input.low or -2, input.high or 2
  return (dev:rand(shape) * (high - low) + low):to(dtype)   -- both sides begin with the same numbers, rounded once
end

return { list = list, types = types, draw = draw }
