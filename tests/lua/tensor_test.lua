-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

tap.test("a device says what it is", function()
  tap.equal(dev.name, "cpu")
  tap.ok(dev == rille.device("cpu") and dev == rille.devices()[1])
  tap.ok(tostring(dev):find("^Device cpu: "))
  tap.ok(dev.threads >= 1)
  tap.raises("device", "no device 'cuda:0'", rille.device, "cuda:0")
  tap.raises("invalid", "did you mean 'randn'", function() return dev:rand_n { 2 } end)
end)

tap.test("making tensors", function()
  tap.equal(dev:zeros { 2, 3 }:totable(), { { 0, 0, 0 }, { 0, 0, 0 } })
  tap.equal(dev:full { 2, value = 7, dtype = "i64" }:totable(), { 7, 7 })
  tap.equal(dev:arange { 4 }:totable(), { 0, 1, 2, 3 })
  tap.equal(dev:arange { 1, 2, 0.5 }:totable(), { 1, 1.5 })
  tap.equal(dev:tensor({ { 1, 2 }, { 3, 4 } }):totable(), { { 1, 2 }, { 3, 4 } })
  tap.equal(dev:tensor({ true, false }).dtype, "bool")
  tap.equal(dev:tensor(3):item(), 3)
  tap.equal(dev:randn { 2, 3, dtype = "f64" }.dtype, "f64")
  tap.equal(dev:randn({ 2, 3 }):shape(), { 2, 3 })
  tap.raises("invalid", "did you mean 'dtype'", function() return dev:randn { 2, dtpye = "f32" } end)
  tap.raises("invalid", "f16x", function() return dev:randn { 2, dtype = "f16x" } end)
  tap.raises("invalid", "differ in length", function() return dev:tensor { { 1, 2 }, { 3 } } end)
end)

tap.test("the same seed gives the same numbers", function()
  dev:seed(7)
  local a, state = dev:randn { 4 }:totable(), dev:random_state()
  local b = dev:randn { 4 }:totable()
  dev:set_random_state(state)
  tap.equal(dev:randn { 4 }:totable(), b)
  dev:seed(7)
  tap.equal(dev:randn { 4 }:totable(), a)
end)

tap.test("arithmetic, with numbers on either side", function()
  local a, b = dev:tensor { 1, 2, 4 }, dev:tensor { 2, 2, 2 }
  tap.equal((a + b):totable(), { 3, 4, 6 })
  tap.equal((a - 1):totable(), { 0, 1, 3 })
  tap.equal((1 - a):totable(), { 0, -1, -3 })
  tap.equal((2 * a / b):totable(), { 1, 2, 4 })
  tap.equal((8 / a):totable(), { 8, 4, 2 })
  tap.equal((a ^ 2):totable(), { 1, 4, 16 })
  tap.equal((-a):totable(), { -1, -2, -4 })
  tap.equal(a:lt(b):totable(), { true, false, false })
  tap.equal(a:lt(b):where(a, b):totable(), { 1, 2, 2 })
  tap.equal(#a, 3)
end)

tap.test("every type can be made, cast, computed and read", function()
  for _, dtype in ipairs { "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64" } do
    local t = dev:tensor({ 1, 2, 100 }, { dtype = dtype })
    tap.equal(t.dtype, dtype)
    tap.equal(t:totable(), { 1, 2, 100 })
    tap.equal((t + 1):totable(), { 2, 3, 101 })
    tap.equal((t % 3):totable(), { 1, 2, 1 })
    tap.equal(select(2, t:max(1)):item(), 2)
    tap.equal(t:to("f32"):to(dtype):sum():item(), 103)
    tap.equal(dev:ones { 2, dtype = dtype }:to("bool"):totable(), { true, true })
  end
  tap.equal((dev:ones { 2, dtype = "bf16" } * dev:ones { 2, dtype = "f16" }).dtype, "f32")
  tap.equal(dev:tensor({ 65504, 1e-7, -2.5 }, { dtype = "f16" }):totable()[1], 65504)
  tap.ok(dev:tensor({ 1.01 }, { dtype = "bf16" }):text():find("bf16[1] cpu", 1, true))
  tap.equal(dev:randn { 4, 8, dtype = "bf16" }:matmul(dev:randn { 8, 2, dtype = "bf16" }).dtype, "bf16")
end)

tap.test("functions of elements", function()
  local x = dev:tensor { -1.5, 0, 2.5 }
  tap.equal(x:floor():totable(), { -2, 0, 2 })
  tap.equal(x:round():totable(), { -2, 0, 2 })
  tap.equal(x:clamp(-1, 1):totable(), { -1, 0, 1 })
  tap.equal(x:clamp(nil, 1):totable(), { -1.5, 0, 1 })
  tap.equal(x:leaky_relu(0.5):totable(), { -0.75, 0, 2.5 })
  tap.equal((x % 2):totable(), { 0.5, 0, 0.5 })
  tap.equal((7 % dev:tensor({ 4, -4 }, { dtype = "i32" })):totable(), { 3, -1 })
  tap.equal(x:gt(0):logical_or(x:lt(-1)):totable(), { true, false, true })
  tap.equal(dev:tensor({ 12 }, { dtype = "u8" }):bitwise_and(dev:tensor({ 10 }, { dtype = "u8" })):item(), 8)
  tap.equal(x:gt(0):where(x, 0):totable(), { 0, 0, 2.5 })
  tap.equal(x:masked_fill(x:lt(0), 9):totable(), { 9, 0, 2.5 })
  tap.ok(math.abs(dev:tensor({ 1 }):gelu("none"):item() - 0.8413447) < 1e-6)
  tap.raises("invalid", "form 'exact'", function() return x:gelu("exact") end)
  tap.raises("invalid", "divided by zero", function() return (dev:tensor({ 1 }, { dtype = "i64" }) % 0):item() end)
end)

tap.test("reductions of every kind", function()
  local t = dev:tensor { { 1, 5, 3 }, { 4, 2, 6 } }
  local values, places = t:max(2)
  tap.equal({ values:totable(), places:totable() }, { { 5, 6 }, { 1, 2 } })
  tap.equal(select("#", t:max()), 1)
  tap.equal(t:prod(1):totable(), { 4, 10, 18 })
  tap.equal(t:argmin(-1):totable(), { 0, 1 })
  tap.equal(t:cumsum(2):totable(), { { 1, 6, 9 }, { 4, 6, 12 } })
  tap.equal(t:var(2, { correction = 0 }):totable()[2] - 8 / 3 < 1e-6, true)
  tap.equal(t:std(2, true):shape(), { 2, 1 })
  tap.equal(t:gt(5):any():item(), true)
  tap.equal(t:gt(5):all(2):totable(), { false, false })
  tap.equal(dev:tensor({ 3, 4 }):norm():item(), 5)
  tap.equal(dev:tensor({ 3, -4 }):norm(math.huge):item(), 4)
  tap.raises("invalid", "correction", function() return dev:ones { 1 }:var() end)
end)

tap.test("options without dimensions", function()
  local t = dev:tensor { { 1, 5, 3 }, { 4, 2, 6 } }
  for _, verb in ipairs { "var", "std" } do
    tap.equal(t[verb](t, { correction = 0 }):item(), t[verb](t, nil, { correction = 0 }):item())
    tap.ok(t[verb](t, { correction = 0 }):item() < t[verb](t):item())
  end
  for _, verb in ipairs { "sum", "mean", "prod", "max", "min", "logsumexp", "norm" } do
    tap.equal(t[verb](t, { keepdim = true }):shape(), { 1, 1 })
  end
  tap.equal(t:gt(5):any({ keepdim = true }):shape(), { 1, 1 })
  tap.equal(t:gt(5):all({ keepdim = true }):shape(), { 1, 1 })
  tap.equal(t:norm(1, { keepdim = true }):totable(), { { 21 } })
  tap.equal(t:argmax({ keepdim = true }):totable(), { { 1 }, { 2 } })
  tap.equal(t:argmin({ keepdim = true }):shape(), { 2, 1 })
  tap.equal((t:sort { descending = true }):totable(), { { 5, 3, 1 }, { 6, 4, 2 } })
  tap.equal(t:argsort({ descending = true }):totable(), { { 1, 2, 0 }, { 2, 0, 1 } })
  tap.equal((t:topk(1, { largest = false })):totable(), { { 1 }, { 2 } })
end)

tap.test("slices are views, and can be written", function()
  local t = dev:arange { 12 }:reshape(3, 4)
  tap.equal(t[2]:totable(), { 4, 5, 6, 7 })
  tap.equal(t[-1][1]:item(), 8)
  tap.equal(t[{ 2 }]:totable(), { 4, 5, 6, 7 })
  tap.equal(t[{ { 1, 2 }, { -2, -1 } }]:totable(), { { 2, 3 }, { 6, 7 } })
  tap.equal(t[{ {}, 3 }]:totable(), { 2, 6, 10 })
  tap.equal(t[{ { 1, -1, 2 }, { 2, 4, 2 } }]:totable(), { { 1, 3 }, { 9, 11 } })
  tap.equal(t[{ {}, { 1, 4, 3 } }]:totable(), { { 0, 3 }, { 4, 7 }, { 8, 11 } })
  tap.equal(t[{ {}, { 2, 3, 9 } }]:totable(), { { 1 }, { 5 }, { 9 } })
  local even = t:clone()
  even[{ {}, { 2, 4, 2 } }] = 0
  even[{ { 1, 3, 2 }, 1 }] = dev:tensor { 7, 8 }
  tap.equal(even:totable(), { { 7, 0, 2, 0 }, { 4, 0, 6, 0 }, { 8, 0, 10, 0 } })
  t[{ { 2, 3 }, 1 }] = -1
  t[1] = dev:tensor({ 9, 9, 9, 9 }, { dtype = "i64" })
  tap.equal(t:totable(), { { 9, 9, 9, 9 }, { -1, 5, 6, 7 }, { -1, 9, 10, 11 } })
  local w = dev:ones { 3, requires_grad = true }
  w[{ { 2, 3 } }]:sum():backward()
  tap.equal(w.grad:totable(), { 0, 1, 1 })
  local long = dev:ones { 5, requires_grad = true }
  long[{ { 2, 5, 2 } }]:sum():backward()
  tap.equal(long.grad:totable(), { 0, 1, 0, 1, 0 })
  tap.raises("state", "gradients are recorded", function() w[1] = 2 end)
  tap.raises("invalid", "position 4 in dimension 1 of [3, 4]", function() return t[4] end)
  tap.raises("invalid", "a slice from 3 to 2", function() return t[{ { 3, 2 } }] end)
  tap.raises("invalid", "a slice in steps of 0", function() return t[{ { 1, 3, 0 } }] end)
  tap.raises("invalid", "a slice has 4 numbers", function() return t[{ { 1, 3, 1, 1 } }] end)
  tap.raises("invalid", "a slice names 3 dimensions, more than [3, 4] has", function() return t[{ 1, 1, 1 }] end)
  tap.raises("invalid", "the field 'grad'", function() t.grad = 1 end)
end)

tap.test("elements by a mask, and where they are", function()
  local t = dev:tensor({ { 1, -2, 3 }, { -4, 5, 0 } }, { requires_grad = true })
  local kept = t:masked_select(t:gt(0))
  tap.equal(kept:totable(), { 1, 3, 5 });
  (kept * dev:tensor { 1, 2, 3 }):sum():backward()
  tap.equal(t.grad:totable(), { { 1, 0, 2 }, { 0, 3, 0 } })
  tap.equal(t:transpose():masked_select(t:transpose():lt(0)):totable(), { -4, -2 })
  tap.equal(t:masked_select(dev:tensor({ true, false, true })):totable(), { 1, 3, -4, 0 })
  tap.equal(t:masked_select(t:gt(9)):shape(), { 0 })
  tap.equal(rille.no_grad(function() return t:masked_select(t:gt(0)).requires_grad end), false)
  tap.equal(t:nonzero():totable(), { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 0 }, { 1, 1 } })
  tap.equal(t:gt(4):nonzero():totable(), { { 1, 1 } })
  tap.equal(dev:zeros { 3 }:nonzero():shape(), { 0, 1 })
  local rows = dev:tensor { true, false, true }
  tap.equal(dev:arange { 6 }:reshape(3, 2):index_select(1, rows:nonzero():select(2, 1)):totable(),
    { { 0, 1 }, { 4, 5 } })
  tap.raises("invalid", "masked_select: a mask of f32[2, 3]", function() return t:masked_select(t) end)
  tap.raises("invalid", "[2, 3]", function() return t:masked_select(dev:ones({ 2 }):gt(0)) end)
  local f = rille.compile(function(x) return x:masked_select(x:gt(0)) end)
  tap.raises("state", "a value is read inside a compiled function", function() for _ = 1, 3 do f(t:detach()) end end)
end)

tap.test("images of another size", function()
  local x = dev:tensor({ 1, 2, 3, 4 }):reshape(1, 1, 2, 2)
  tap.equal(x:interpolate({ size = { 2, 4 } }):totable()[1][1], { { 1, 1, 2, 2 }, { 3, 3, 4, 4 } })
  tap.equal(x:interpolate({ scale = { 1, 2 }, mode = "bilinear" }):totable()[1][1],
    { { 1, 1.25, 1.75, 2 }, { 3, 3.25, 3.75, 4 } })
  tap.equal(x:interpolate({ size = 3, mode = "bilinear", align_corners = true }):totable()[1][1],
    { { 1, 1.5, 2 }, { 2, 2.5, 3 }, { 3, 3.5, 4 } })
  tap.equal(x:conv_transpose2d(dev:ones { 1, 1, 1, 1 }, dev:ones { 1 }, { stride = 2 }):totable()[1][1],
    { { 2, 1, 3 }, { 1, 1, 1 }, { 4, 1, 5 } })
  tap.raises("invalid", "a size or a scale", function() return x:interpolate {} end)
  tap.raises("invalid", "a size or a scale", function() return x:interpolate { size = 2, scale = 2 } end)
  tap.raises("invalid", "there is no mode 'cubic'", function() return x:interpolate { size = 2, mode = "cubic" } end)
  tap.raises("invalid", "output_padding {2, 2}", function()
    return x:conv_transpose2d(dev:ones { 1, 1, 1, 1 }, nil, { stride = 2, output_padding = 2 })
  end)
  tap.raises("invalid", "interpolate: [2, 2] to {4, 4}", function() return x[1][1]:interpolate { size = 4 } end)
end)

tap.test("choosing, placing and ordering by number", function()
  local t = dev:tensor { { 3, 1, 2 }, { 6, 5, 4 } }
  local values, places = t:sort(2, { descending = true })
  tap.equal({ values:totable(), places:totable() }, { { { 3, 2, 1 }, { 6, 5, 4 } }, { { 0, 2, 1 }, { 0, 1, 2 } } })
  tap.equal(t:argsort():totable(), { { 1, 2, 0 }, { 2, 1, 0 } })
  tap.equal(select(2, t:topk(1)):totable(), { { 0 }, { 0 } })
  tap.equal(t:gather(2, places):totable(), values:totable())
  tap.equal(t:index_select(2, dev:tensor({ 2, 0 }, { dtype = "u8" })):totable(), { { 2, 3 }, { 4, 6 } })
  tap.equal(t:zeros_like():scatter_add(1, dev:zeros { 2, 3, dtype = "i32" }, t):totable(), { { 9, 6, 6 }, { 0, 0, 0 } })
  tap.equal(t:scatter(2, dev:zeros { 2, 1, dtype = "i32" }, 0):totable(), { { 0, 1, 2 }, { 0, 5, 4 } })
  tap.equal(dev:tensor({ 1 }, { dtype = "u8" }):one_hot(3):totable(), { { 0, 1, 0 } })
  tap.raises("invalid", "gather: f32[2, 3] with indices of f32[2, 3]", function() return t:gather(1, t) end)
  tap.raises("invalid", "index 7 at position 0", function()
    return t:index_select(1, dev:tensor({ 7 }, { dtype = "i64" })):totable()
  end)
end)

tap.test("shapes made of shapes", function()
  local t = dev:tensor { { 1, 2 }, { 3, 4 } }
  tap.equal(t:flip(2):totable(), { { 2, 1 }, { 4, 3 } })
  tap.equal(t:roll(1, 1):totable(), { { 3, 4 }, { 1, 2 } })
  tap.equal(t:tile(1, 2):totable(), { { 1, 2, 1, 2 }, { 3, 4, 3, 4 } })
  tap.equal(t:repeat_interleave(2, 1):shape(), { 4, 2 })
  tap.equal(t:stack({ t }, -1):shape(), { 2, 2, 2 })
  tap.equal(t:pad({ 1, 0 }, 9):totable(), { { 9, 1, 2 }, { 9, 3, 4 } })
  tap.equal({ select("#", t:split(1, 2)), (t:split({ 2, 0 }, 1)):shape() }, { 2, { 2, 2 } })
  tap.equal(t:tril():totable(), { { 1, 0 }, { 3, 4 } })
  tap.equal(t:flatten():totable(), { 1, 2, 3, 4 })
  tap.equal(dev:eye { 2 }:totable(), { { 1, 0 }, { 0, 1 } })
  tap.equal(dev:linspace { 0, 1, 3 }:totable(), { 0, 0.5, 1 })
  tap.equal(t:full_like(2, { dtype = "i8" }).dtype, "i8")
end)

tap.test("images: convolution, pooling, normalisation", function()
  local x = dev:arange { 16, dtype = "f32" }:reshape(1, 1, 4, 4)
  tap.equal(x:conv2d(dev:ones { 1, 1, 2, 2 }, nil, { stride = 2 }):totable(), { { { { 10, 18 }, { 42, 50 } } } })
  tap.equal(x:conv2d(dev:ones { 2, 1, 3, 3 }, dev:zeros { 2 }, { padding = { 1, 0 } }):shape(), { 1, 2, 4, 2 })
  tap.equal(x:reshape(1, 2, 8):conv1d(dev:ones { 2, 1, 3 }, nil, { groups = 2, dilation = 2 }):shape(), { 1, 2, 4 })
  tap.equal(x:max_pool2d(2):totable(), { { { { 5, 7 }, { 13, 15 } } } })
  tap.equal(x:avg_pool2d({ 2, 4 }):totable(), { { { { 3.5 }, { 11.5 } } } })
  tap.equal(x:adaptive_avg_pool2d(1):item(), 7.5)
  local mean, var = dev:zeros { 1 }, dev:ones { 1 }
  local y = x:batch_norm(nil, nil, { running_mean = mean, running_var = var })
  tap.ok(math.abs(y:std(nil, { correction = 0 }):item() - 1) < 1e-4 and math.abs(mean:item() - 0.75) < 1e-6)
  local used = x:batch_norm(nil, nil, { running_mean = mean, running_var = var, training = false })
  tap.equal(used:shape(), { 1, 1, 4, 4 })
  tap.equal(dev:ones { 2, 4, 3 }:group_norm(2):shape(), { 2, 4, 3 })
  tap.raises("invalid", "conv2d: [1, 1, 4, 4] with a weight of [1, 2, 2, 2]", function()
    return x:conv2d(dev:ones { 1, 2, 2, 2 })
  end)
end)

tap.test("attention with masks, and rotary embedding", function()
  local q, k = dev:randn { 2, 4, 3, 8 }, dev:randn { 2, 2, 5, 8 }
  tap.equal(q:scaled_dot_product_attention(k, k):shape(), { 2, 4, 3, 8 })
  local mask = dev:ones { 3, 5 }:tril():gt(0)
  local first = q:scaled_dot_product_attention(k, k, { mask = mask })[{ 1, 1, 1 }]
  tap.equal((first - k[{ 1, 1, 1 }]):abs():max():item(), 0)
  local lengths = dev:tensor({ 1, 5 }, { dtype = "i64" })
  local o = q:scaled_dot_product_attention(k, k, { lengths = lengths })
  tap.ok((o[{ 1, 1, 1 }] - k[{ 1, 1, 1 }]):abs():max():item() < 1e-6)
  local cos, sin = dev:rope_angles { 3, 8 }
  tap.equal(cos:shape(), { 3, 4 })
  tap.ok((q:rope(cos, sin):norm() - q:norm()):abs():item() < 1e-3)
  tap.raises("invalid", "a mask of f32[2, 2]", function()
    return q:scaled_dot_product_attention(k, k, { mask = dev:ones { 2, 2 } })
  end)
end)

tap.test("sums of products by letters", function()
  local a, b = dev:tensor { { 1, 2 }, { 3, 4 } }, dev:tensor { 1, 10 }
  tap.equal(a:einsum("ij,j->i", b):totable(), { 21, 43 })
  tap.equal(a:einsum("ij->"):item(), 10)
  tap.raises("invalid", "'j' is 2 in [2, 2] and 3 in [3]", function() return a:einsum("ij,j", dev:ones { 3 }) end)
end)

tap.test("losses", function()
  local x, y = dev:tensor { 0, 2 }, dev:tensor { 1, 0 }
  tap.equal(x:mse_loss(y):item(), 2.5)
  tap.equal(x:mse_loss(y, "none"):totable(), { 1, 4 })
  tap.equal(x:l1_loss(y, "none"):totable(), { 1, 2 })
  tap.equal(x:smooth_l1_loss(y, "sum"):item(), 2)
  tap.ok(math.abs(x:binary_cross_entropy_with_logits(y, "sum"):item() - 2.8200753) < 1e-5)
  local logits = dev:randn { 3, 4 }
  local labels = dev:tensor({ 1, 0, -100 }, { dtype = "i64" })
  local a, b = logits:cross_entropy(labels):item(), logits:log_softmax():nll_loss(labels):item()
  tap.ok(math.abs(a - b) < 1e-5)
  tap.ok(logits:cross_entropy(labels, { label_smoothing = 0.1 }):item() ~= a)
  tap.raises("invalid", "'average'", function() return x:mse_loss(y, "average") end)
end)

tap.test("a plain number beside whole numbers", function()
  local i, yes = dev:tensor({ 1, 2 }, { dtype = "i32" }), dev:tensor { true, false }
  tap.equal(yes:where(i, 0.5):totable(), { 1, 0.5 })
  tap.equal(yes:where(-0.5, i):totable(), { -0.5, 2 })
  tap.equal(yes:where(i, 1e10):totable(), { 1, 1e10 })
  tap.equal(yes:where(dev:tensor({ 7, 7 }, { dtype = "u8" }), -1):totable(), { 7, -1 })
  tap.equal((i + 1e10):totable(), { 1e10 + 1, 1e10 + 2 })
  local large = dev:tensor({ 2 ^ 60 }, { dtype = "i64" })
  for _, made in ipairs { large - 2 ^ 53, large + 2 ^ 54, large:mul(4) } do tap.equal(made.dtype, "i64") end
  tap.equal((large - 2 ^ 59):item(), 2 ^ 59)
  tap.equal((i + 1e300).dtype, "f32")
end)

tap.test("sub_ and div_", function()
  local x = dev:tensor { 1, 2, 3 }
  local same = x:sub_(1):div_(3):sub_(dev:tensor { 0, 0, 1 }):div_(dev:tensor { 1, 4, 7 })
  tap.equal(same, x)
  local plain = (((dev:tensor { 1, 2, 3 } - 1) / 3) - dev:tensor { 0, 0, 1 }) / dev:tensor { 1, 4, 7 }
  tap.equal(x:totable(), plain:totable())
  tap.equal(dev:tensor({ 5, 6 }, { dtype = "u8" }):sub_(1):totable(), { 4, 5 })
  tap.equal(dev:tensor({ 1, 2 }, { dtype = "bf16" }):div_(2).dtype, "bf16")
end)

tap.test("losses of large logits keep their digits", function()
  local two = math.log(2)
  for _, size in ipairs { 1e5, 1e7 } do                     -- whose next number in f32 is 0.008 and 1 away
    local x = dev:full({ 2, 2 }, { value = size })
    x:requires_grad_()
    local labels = dev:tensor({ 0, 1 }, { dtype = "i64" })
    local loss = x:cross_entropy(labels)
    tap.ok(math.abs(loss:item() - two) < 1e-6, tostring(loss:item()))
    loss:backward()
    for _, row in ipairs(x.grad:totable()) do
      for _, slope in ipairs(row) do tap.ok(math.abs(math.abs(slope) - 0.25) < 1e-6, tostring(slope)) end
    end
    for _, dim in ipairs { 1, 2 } do                        -- along columns, and along rows
      for _, row in ipairs(x:detach():log_softmax(dim):totable()) do
        for _, one in ipairs(row) do tap.ok(math.abs(one + two) < 1e-6, tostring(one)) end
      end
    end
  end
end)

tap.test("Fourier transforms", function()
  local x = dev:tensor { 1, 0, 0, 0 }
  tap.equal(x:rfft():totable(), { { 1, 0 }, { 1, 0 }, { 1, 0 } })
  tap.equal(x:rfft():irfft():totable(), { 1, 0, 0, 0 })
  local z = dev:randn { 3, 5, 2 }
  tap.ok((z:fft():ifft() - z):abs():max():item() < 1e-6)
  tap.ok((z:fft2():ifft2() - z):abs():max():item() < 1e-6)
  local image = dev:randn { 4, 5 }
  tap.ok((image:rfft2():irfft2(5) - image):abs():max():item() < 1e-6)
  tap.raises("invalid", "fft: [4]: expected complex numbers", function() return x:fft() end)
end)

tap.test("comparison is identity; < and .. say what to do instead", function()
  local a, b = dev:ones { 2 }, dev:ones { 2 }
  tap.ok(a == a and a ~= b)
  tap.raises("invalid", "a:lt(b)", function() return a < b end)
  tap.raises("invalid", "t:item()", function() return "x" .. a end)
end)

tap.test("dimensions and positions count from 1, values from 0", function()
  local t = dev:tensor { { 1, 5, 3 }, { 9, 7, 8 } }
  tap.equal(t:sum(1):totable(), { 10, 12, 11 })
  tap.equal(t:sum(-1, true):shape(), { 2, 1 })
  tap.equal(t:mean():item(), 5.5)
  tap.equal(t:argmax(2):totable(), { 1, 0 })
  tap.equal(t:select(1, 2):totable(), { 9, 7, 8 })
  tap.equal(t:select(2, -1):totable(), { 3, 8 })
  tap.equal(t:narrow(2, 2, 2):totable(), { { 5, 3 }, { 7, 8 } })
  tap.equal(t:transpose():shape(), { 3, 2 })
  tap.equal(t:transpose(1, 2):totable(), { { 1, 9 }, { 5, 7 }, { 3, 8 } })
  tap.equal(t:permute(2, 1):shape(), { 3, 2 })
  tap.equal(t:unsqueeze(1):shape(), { 1, 2, 3 })
  tap.equal(t:reshape(3, -1):shape(), { 3, 2 })
  tap.equal(t:cat({ t }, 2):shape(), { 2, 6 })
  tap.equal({ select("#", t:chunk(3, 2)), (t:chunk(3, 2)):shape() }, { 3, { 2, 1 } })
  tap.equal(t:size(-1), 3)
  tap.raises("invalid", "dimensions count from 1", function() return t:sum(0) end)
  tap.raises("invalid", "positions count from 1", function() return t:select(1, 3) end)
end)

tap.test("a wrong shape names both shapes and the line of the script", function()
  local a, b = dev:ones { 2, 3 }, dev:ones { 4, 5 }
  local err = tap.raises("invalid", "[2, 3]", function() local c = a:matmul(b) return c end)
  tap.ok(err.message:find("[4, 5]", 1, true), err.message)
  tap.ok(err.message:find("tensor_test.lua:%d+"), err.message)
  tap.raises("invalid", "tensor_test.lua", function() local v = a:item() return v end)
end)

tap.test("tostring does not compute; print shows values", function()
  local t = dev:ones { 2, 2 } * 3
  tap.ok(tostring(t):find("f32[2, 2] cpu", 1, true), tostring(t))
  tap.ok(tostring(t):find("pending", 1, true), tostring(t))
  tap.ok(t:text():find("[[3, 3],\n [3, 3]]", 1, true), t:text())
  print("# " .. dev:arange { 20 }:text())
end)

tap.test("gradients", function()
  local w = dev:tensor({ 1, 2 }, { requires_grad = true })
  tap.equal(w.grad, nil)
  local loss = (w * w):sum()
  loss:backward()
  tap.equal(w.grad:totable(), { 2, 4 })
  tap.raises("state", "", function() loss:backward() end)
  local y = rille.no_grad(function() return (w * 2):sum() end)
  tap.raises("state", "", function() y:backward() end)
  tap.ok(not y.requires_grad and w.requires_grad)
  tap.raises("io", "mine", rille.no_grad, function() rille.error { kind = "io", message = "mine" } end)
  tap.ok((w * 2).requires_grad, "no_grad ends with an error, too")
end)

tap.test("a freed tensor says so", function()
  local t = dev:ones { 2 }
  t:free()
  tap.raises("state", "freed", function() return t + 1 end)
  tap.equal(tostring(t), "Tensor (freed)")
end)

tap.test("reading waits only for the own fiber, also in a coroutine and in pcall", function()
  local seen = rille.all {
    function() return dev:ones { 3 }:sum():item() end,
    function() return coroutine.wrap(function() return dev:ones { 4 }:sum():item() end)() end,
    function() return select(2, pcall(function() return dev:ones { 5 }:sum():item() end)) end,
  }
  tap.equal(seen, { 3, 4, 5 })
end)

tap.test("memory is counted and limited", function()
  local m = dev:memory()
  tap.ok(m.live >= 0 and type(m.summary) == "string")
  dev:limit_memory(64e6)
  tap.raises("memory", "", function() return dev:ones { 64, 1024, 1024 }:sum():item() end)
  dev:limit_memory(0)
  tap.equal(dev:ones { 4 }:sum():item(), 4)
end)

tap.test("the operation that makes the first NaN is named, with its line and what it was given", function()
  local x = dev:tensor({ 1, 2, -1, 3 })
  local err = tap.raises("state", "log makes 1 NaN of 4 values, f32[4] (tensor_test.lua:", dev.check_numbers, dev,
    function() return (x * 1):log():sum() end)
  tap.equal(err.code, "not_a_number")
  tap.ok(err.hint:find("f32[4] from -1 to 3", 1, true), err.hint)
  tap.ok((x:log():sum():item()) ~= 0, "without it nothing is said")
  tap.equal(dev:check_numbers(function(a) return a end, 5), 5)

  -- Through infinity, in a compiled function, and only the first one.
  local f = rille.compile(function(a) return ((a * 100):exp() - (a * 100):exp()):sqrt():sum() end)
  for _ = 1, 3 do f(x) end
  err = tap.raises("state", "sub makes 3 NaN", dev.check_numbers, dev, f, x:clamp(0, 9))
  tap.ok(err.hint:find("the first infinity came from exp (tensor_test.lua:", 1, true), err.hint)
  tap.ok(f(dev:tensor { 0, 0, 0, 0 }):item() == 0, "it is compiled again")

  -- In a gradient; the parameter is not touched by a step that follows.
  local w = dev:tensor({ 0, 4 }, { requires_grad = true })
  local opt = rille.optim.sgd({ w }, { lr = 1 })
  tap.raises("state", "(in the gradient of sqrt, tensor_test.lua:", dev.check_numbers, dev, function()
    local loss = (w:sqrt() * dev:tensor { 0, 1 }):sum()
    loss:backward()
    opt:step()
  end)
  tap.equal(w:detach():totable(), { 0, 4 })

  -- What comes from outside.
  local nan = dev:tensor { 0 / 0 }
  tap.raises("state", "add is given NaN, in f32[1] that came from outside", dev.check_numbers, dev,
    function() return nan + 1 end)
  tap.raises("invalid", "expected a function", dev.check_numbers, dev, 5)
end)

tap.test("a freed tensor says what it was and where it was freed", function()
  local a, b = dev:ones { 2, 3 }, dev:ones { 2, 3 }
  a:free()
  a:free()
  local err = tap.raises("state", "the tensor f32[2, 3] was freed at tensor_test.lua:", function()
    local sum = b + a
    return sum
  end)
  tap.ok(select(2, err.message:gsub("tensor_test.lua:%d+", "")) == 2, "the line of its use, too: " .. err.message)
  tap.raises("state", "was freed at", a.sum, a)
  local f = rille.compile(function(x) return x * a end)
  tap.raises("state", "the tensor f32[2, 3] was freed at", f, b)
end)

-- What takes two tensors, with operands that do not go together: the message has both, and the line.
tap.test("shapes that do not go together: both operands and the line", function()
  local a, b = dev:ones { 2, 3 }, dev:ones { 4, 5 }
  local ids = dev:zeros { 4, 5, dtype = "i64" }
  local image = dev:ones { 1, 2, 8, 8 }
  local cases = {
    add = { a, b }, sub = { a, b }, mul = { a, b }, div = { a, b }, pow = { a, b }, maximum = { a, b },
    minimum = { a, b }, atan2 = { a, b }, lt = { a, b }, eq = { a, b }, remainder = { a, b }, floor_divide = { a, b },
    logical_and = { a, b }, add_ = { a, b }, mul_ = { a, b }, copy_ = { a, b }, matmul = { a, b },
    linear = { a, b }, layer_norm = { a, b, b }, rms_norm = { a, b }, cross_entropy = { a, ids },
    mse_loss = { a, b }, masked_fill = { a, b:gt(0), 0 }, index_select = { a, 1, ids },
    gather = { a, 1, ids:reshape(20) },
    scaled_dot_product_attention = { image, dev:ones { 1, 3, 8, 7 }, image },
    conv2d = { image, dev:ones { 4, 3, 3, 3 } }, batch_norm = { image, dev:ones { 3 }, dev:ones { 3 } },
  }
  local function shape_of(t) return "[" .. table.concat(t:shape(), ", ") .. "]" end
  for name, operands in pairs(cases) do
    local function call(...) return a[name](...) end
    local compiled = rille.compile(function() return call(unpack(operands)) end)
    for _, run in ipairs { function() return call(unpack(operands)) end, compiled } do
      local ok, err = pcall(run)
      local text = tostring(err)
      tap.ok(not ok and err.kind == "invalid", name .. ": " .. text)
      for i, t in ipairs(operands) do
        if i <= 2 and type(t) == "userdata" then
          tap.ok(text:find(shape_of(t), 1, true), name .. " does not name " .. shape_of(t) .. ": " .. text)
        end
      end
      tap.ok(text:find("tensor_test.lua:", 1, true), name .. " has no line: " .. text)
    end
  end
  local whole = dev:ones { 2, 3, dtype = "i64" }
  for name, operands in pairs { matmul = { a, whole:transpose(1, 2) }, bitwise_and = { whole, a },
    embedding = { a, a }, cross_entropy = { a, dev:ones { 2 } }, where = { a, a, a } } do
    local err = tap.raises("invalid", "tensor_test.lua:", function()
      local made = a[name](unpack(operands))
      return made
    end)
    tap.ok(tostring(err):find("f32", 1, true), name .. " does not name the type: " .. tostring(err))
  end
end)

-- As numpy's accumulators: whole numbers exactly, half types in a wider one, and one rounding at the end.
tap.test("what is added up keeps its digits", function()
  local function is(t, value, slack)
    local got = t:item()
    tap.ok(math.abs(got - value) <= (slack or 0) * math.abs(value), ("%.17g, not %.17g"):format(got, value))
  end
  local function full(n, value, dtype) return dev:full { n, value = value, dtype = "f64" }:to(dtype) end
  is(full(1000, 2e9, "i32"):mean(), 2e9)
  is(full(1000, 2e9, "i32"):sum(), 2e12)
  is(full(1000, 2 ^ 62, "i64"):mean(), 2 ^ 62)
  is(full(1000, 100, "i8"):sum(), 100000)
  is(full(1000, 250, "u8"):mean(), 250)
  is(full(1000, -128, "i8"):mean(), -128)
  is(full(6, 100, "i8"):prod(), 1e12)
  is(full(100000, 1, "bool"):mean(), 1)
  is(dev:arange { 1000 }:to("i32"):reshape(10, 100):mean(2):sum(), 4995)
  is(dev:arange { 1000 }:to("i64"):reshape(10, 100):mean { 1, 2 }, 499.5)
  local far = dev:arange { 4 }:to("i32") + 2000000000                  -- their differences are beyond f32
  is(far:var(), 5 / 3, 1e-7)
  is(far:std(nil, { correction = 0 }), math.sqrt(1.25), 1e-7)
  is((dev:arange { 4 }:to("i64") + 2000000000):var(), 5 / 3, 1e-7)
  for _, dtype in ipairs { "f16", "bf16" } do
    is(full(65536, 0.5, dtype):sum(), 32768)
    is(full(70000, 2, dtype):mean(), 2)
    is(full(4, 300, dtype):norm(), 600)                                -- whose square is no f16
    local spread = dev:tensor({ -300, 300, -300, 300 }):to(dtype)
    is(spread:std(nil, { correction = 0 }), 300)
    tap.equal(spread:std().dtype, dtype)
    is((dev:arange { 8 } + 128):to(dtype):var(nil, { correction = 0 }), 5.25)
  end
  tap.equal(full(3, 2, "i32"):mean().dtype, "f32")
  tap.equal(full(3, 2, "i64"):var().dtype, "f32")
end)

tap.test("bytes: there and back, of every type, of views as they are read", function()
  local t = dev:tensor({ { 1, 2, 3 }, { 0, 1, 258 } }, { dtype = "i32" })
  tap.equal(t:bytes(), "\1\0\0\0\2\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\2\1\0\0")
  tap.equal(t:transpose(1, 2):bytes(), "\1\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\3\0\0\0\2\1\0\0")
  for _, dtype in ipairs { "bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64" } do
    local x = dev:tensor({ { 0, 1, 0 }, { 1, 1, 0 } }, { dtype = dtype })
    local y = dev:from_bytes(x:bytes(), x:shape(), dtype)
    tap.equal({ y.dtype, y:totable() }, { dtype, x:totable() })
  end
  tap.equal(dev:from_bytes("abc"):totable(), { 97, 98, 99 })
  tap.equal({ dev:from_bytes("", { 0, 3 }, "f32"):shape(), dev:zeros { 0 }:bytes() }, { { 0, 3 }, "" })
  tap.equal(#dev:zeros { 5000, 20, dtype = "u8" }:bytes(), 100000)
  tap.raises("invalid", "from_bytes: 5 bytes were given for f32[2], which has 8",
    dev.from_bytes, dev, "abcde", { 2 }, "f32")
  tap.raises("invalid", "a bool tensor must be 0 or 1", dev.from_bytes, dev, "\2", { 1 }, "bool")
  tap.raises("invalid", "f33", dev.from_bytes, dev, "abcd", { 1 }, "f33")
end)

tap.done()
