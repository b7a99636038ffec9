-- run: ephemeral
-- Operations that exist for users of PyTorch: results beside PyTorch's.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")

tap.test("pooling of sequences, by the last window too, and to so many", function()
  local line = dev:tensor { { { 1, 5, 2, 4, 3 } } }
  tap.equal(line:max_pool1d(2):totable(), { { { 5, 4 } } })
  tap.equal(line:max_pool1d(2, { ceil_mode = true }):totable(), { { { 5, 4, 3 } } })
  tap.equal(line:max_pool1d(3, { stride = 1, padding = 1 }):totable(), { { { 5, 5, 5, 4, 4 } } })
  tap.equal(line:avg_pool1d(2, { ceil_mode = true }):totable(), { { { 3, 3, 3 } } })
  tap.equal(line:avg_pool1d(2, { padding = 1, ceil_mode = true }):totable(), { { { 0.5, 3.5, 3.5 } } })
  tap.equal(line:avg_pool1d(2, { padding = 1, count_include_pad = false }):totable(), { { { 1, 3.5, 3.5 } } })
  tap.equal((line:adaptive_avg_pool1d(2) * 3):round():totable(), { { { 8, 9 } } })
  tap.equal(line:adaptive_max_pool1d(3):totable(), { { { 5, 5, 4 } } })
  local image = dev:arange { 12 }:to "f32":reshape(1, 1, 3, 4)
  tap.equal(image:adaptive_max_pool2d(2, 1):totable(), { { { { 7 }, { 11 } } } })
  tap.equal(image:max_pool2d(2, { ceil_mode = true }):shape(), { 1, 1, 2, 2 })
  tap.equal(image:max_pool2d(2, { stride = 3, ceil_mode = true }):shape(), { 1, 1, 1, 2 })   -- none begins outside
  local x = dev:randn { 1, 2, 7, requires_grad = true }
  x:max_pool1d(3, { stride = 2, ceil_mode = true }):sum():backward()
  tap.equal(x.grad:sum():item(), 6)
  tap.raises("invalid", "max_pool1d: [2, 3]: expected [n, c, l]", function() return dev:ones { 2, 3 }:max_pool1d(2) end)
end)

tap.test("a random order, and rows put and added by a list of numbers", function()
  local order = dev:randperm(100)
  tap.equal({ order.dtype, order:shape()[1] }, { "i64", 100 })
  tap.equal(order:sort():totable(), dev:arange { 100 }:totable())
  tap.ok((order - dev:arange { 100 }):abs():sum():item() > 100)
  dev:seed(5)
  local first = dev:randperm { 20 }:totable()
  dev:seed(5)
  tap.equal(dev:randperm(20):totable(), first)
  tap.equal(dev:randperm(0):totable(), {})
  tap.raises("invalid", "randperm", function() return dev:randperm { 2, 3 } end)
  local twice = rille.compile(function() return dev:randperm(50), dev:randperm(50) end)
  local a, b = twice()
  tap.ok((a - b):abs():sum():item() > 0)                 -- two draws, never taken for one
  local x, at = dev:ones { 3, 2 }, dev:tensor({ 2, 0, 2 }, { dtype = "i64" })
  local rows = dev:tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
  tap.equal(x:index_add(1, at, rows):totable(), { { 4, 5 }, { 1, 1 }, { 7, 9 } })
  tap.equal(x:index_copy(1, at, rows):totable(), { { 3, 4 }, { 1, 1 }, { 5, 6 } })
  tap.equal(x:index_add(2, dev:tensor({ 1 }, { dtype = "i64" }), dev:ones { 3, 1 }):totable(),
    { { 1, 2 }, { 1, 2 }, { 1, 2 } })
  tap.raises("invalid", "index_add: [2, 2] in [3, 2] at indices of [3]: expected [3, 2] and a list", function()
    return x:index_add(1, at, dev:ones { 2, 2 })
  end)
end)

tap.test("cross entropy by class weights and ways to reduce, as PyTorch has it", function()
  local x = dev:tensor { { 1, 2, 3 }, { 3, 1, 2 }, { 0, 0, 1 }, { 2, 2, 2 } }
  local y, w = dev:tensor({ 2, 1, -100, 0 }, { dtype = "i64" }), dev:tensor { 1, 2, 0.5 }
  local function near(loss, want)
    for i, v in ipairs(loss:flatten():totable()) do tap.ok(math.abs(v - want[i]) < 1e-4, v) end
  end
  near(x:cross_entropy(y, { weight = w }), { 1.7479 })
  near(x:cross_entropy(y, { weight = w, label_smoothing = 0.1 }), { 1.7179 })
  near(x:cross_entropy(y, { reduction = "sum" }), { 3.9138 })
  near(x:cross_entropy(y, { reduction = "sum", weight = w, label_smoothing = 0.2 }), { 5.9073 })
  local each = x:cross_entropy(y, { reduction = "none" })
  tap.equal(each:shape(), { 4 })
  near(each, { 0.4076, 2.4076, 0, 1.0986 })
  near(x:cross_entropy(y, { reduction = "none", label_smoothing = 0.1 }), { 0.5076, 2.3076, 0, 1.0986 })
  near(x:log_softmax():nll_loss(y, { weight = w }), { 1.7479 })
  local half = x:to "bf16":requires_grad_()
  local loss = half:cross_entropy(y, { reduction = "sum", weight = w })
  tap.equal(loss.dtype, "f32")
  loss:backward()
  tap.equal(half.grad:shape(), { 4, 3 })
  tap.raises("invalid", "'average'", function() return x:cross_entropy(y, { reduction = "average" }) end)
  tap.raises("invalid", "weights f32[2] for 3 classes", function()
    return x:cross_entropy(y, { weight = dev:tensor { 1, 2 } })
  end)
  tap.raises("invalid", "smoothing of 2", function()
    return x:cross_entropy(y, { reduction = "none", label_smoothing = 2 })
  end)
end)

tap.done()
