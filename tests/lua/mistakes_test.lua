-- run: ephemeral
-- Mistakes with tensors, mostly where PyTorch differs: each error names the values, the line
-- and the way out.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")

local a, b = dev:ones { 2, 3 }, dev:ones { 4, 3 }
local missing
local function leaf(...) return dev:ones { ... }:requires_grad_() end

-- The error's kind, and parts of its message and its hint; message or traceback name a line of this file.
local function refused(kind, text, hint, fn)
  local err = tap.raises(kind, text, fn)
  if not (err.hint or ""):find(hint, 1, true) then error("no '" .. hint .. "' in the hint: " .. tostring(err), 2) end
  if not (err.message .. (err.traceback or "")):find("mistakes_test.lua:%d") then
    error("no line in: " .. tostring(err), 2)
  end
end

tap.test("tensors made with other libraries' names", function()
  local whole = { dtype = "i64" }
  for _, t in ipairs { dev:zeros({ 2, 3 }, whole), dev:zeros(2, 3, whole), dev:zeros { 2, 3, dtype = "i64" } } do
    tap.equal(t.dtype .. table.concat(t:shape(), "x"), "i642x3")
  end
  tap.equal(dev:arange(5):shape()[1], 5)
  tap.equal(dev:arange(2, 8, 2):sum():item(), 12)
  tap.equal(dev:eye(2):sum():item(), 2)
  tap.equal(dev:full(2, 2, { value = 7 }):sum():item(), 28)
  tap.equal(dev:ones({ 2 }, missing):sum():item(), 2)
  refused("invalid", "zeros: argument 2 is 3 (", "in one table", function() return dev:zeros({ 2 }, 3) end)
  refused("invalid", "zeros: argument 1 is nil (", "in one table", function() return dev:zeros(missing, 3) end)
  refused("invalid", "zeros: the second table, which is for options, has numbers in it", "in one table",
    function() return dev:zeros({ 2 }, { 3 }) end)
  refused("invalid", "rille.randn does not exist", "rille.device():randn", function() return rille.randn end)
  local w = leaf(2)
  refused("invalid", "adamw: expected a table of options, got 0.001", "{ lr = 0.001 }",
    function() return rille.optim.adamw({ w }, 1e-3) end)
end)

tap.test("something that is no tensor", function()
  refused("invalid", "add: expected Tensor, got a table (mistakes_test.lua:", "dev:tensor(list)",
    function() return a + { 1, 2, 3 } end)
  refused("invalid", "add: expected Tensor, got a table", "dev:tensor(list)", function() return { 1, 2, 3 } + a end)
  refused("invalid", 'mul: expected Tensor, got "2"', "", function() return a * "2" end)
  refused("invalid", "add: expected Tensor, got nil", "check that it was set", function() return a + missing end)
  refused("invalid", "matmul: expected Tensor, got 3", "dev:tensor(3)", function() return a:matmul(3) end)
  refused("invalid", "matmul: expected Tensor, got nothing", "colon", function() return a.matmul(b) end)
  refused("invalid", "sum: expected Tensor, got nothing", "colon", function() return a.sum() end)
  refused("invalid", "cross_entropy's labels: expected Tensor", "dev:tensor(list)",
    function() return a:cross_entropy { 0, 1 } end)
end)

tap.test("names of PyTorch", function()
  for name, ours in pairs { T = "transpose", cuda = 'to("cuda:0")', float = 'to("f32")', numpy = "totable()",
    bmm = "matmul", ndim = "dim()" } do
    refused("invalid", "Tensor has no field or method '" .. name .. "'", ours, function() return a[name] end)
  end
  refused("invalid", 'no element type "float32"', 'here it is "f32"', function()
    return dev:zeros { 2, dtype = "float32" }
  end)
  refused("invalid", "to: 'gpu' is neither a device nor an element type (", '"cuda:0"',
    function() return a:to("gpu") end)
  refused("invalid", "to: 'half'", 'here it is "f16"', function() return a:to("half") end)
  refused("invalid", "rille.optim.AdamW does not exist", "'adamw'", function() return rille.optim.AdamW end)
  refused("invalid", "rille.nn.Linear does not exist", "linear", function() return rille.nn.Linear(2, 3) end)
end)

tap.test("lists that are no tensor", function()
  refused("invalid", "2 values, of which only 1 form a list", "no nil and no names",
    function() return dev:tensor { 1, nil, 3 } end)
  refused("invalid", "1 values, of which only 0 form a list", "names", function() return dev:tensor { x = 1 } end)
  refused("invalid", "the lists of dimension 2 differ", "", function() return dev:tensor { { 1, 2 }, { 3 } } end)
  refused("invalid", "300 at position 1 does not fit u8", "i64",
    function() return dev:tensor({ 300 }, { dtype = "u8" }) end)
  refused("invalid", "-1 at position 2 does not fit u8", "",
    function() return dev:tensor({ 0, -1 }, { dtype = "u8" }) end)
  refused("invalid", "nan at position 1 does not fit i64", 'dtype = "f64"',
    function() return dev:tensor({ math.abs(0 / 0) }, { dtype = "i64" }) end)
  tap.equal(dev:tensor({ -128, 127 }, { dtype = "i8" }):totable(), { -128, 127 })
  tap.equal(dev:tensor({ 1.5, -2 ^ 62 }, { dtype = "i64" }):totable(), { 1, -2 ^ 62 })
  tap.equal(dev:tensor({}):shape(), { 0 })
end)

tap.test("shapes, sizes and dimensions", function()
  refused("invalid", "add: [2, 3] and [4, 3]: sizes 2 and 4 at dimension 2 from the end do not broadcast "
    .. "(mistakes_test.lua:", "", function() return a + b end)
  refused("invalid", "matmul: [2, 3] x [4, 3]: inner dimensions 3 and 4 differ", "", function() return a:matmul(b) end)
  refused("invalid", "linear: [2, 3] x [5, 4]", "", function() return a:linear(dev:ones { 5, 4 }) end)
  refused("invalid", "permute: [1, 1] is not an order of the 2 dimensions of [2, 3]", "counting from 1",
    function() return a:permute(1, 1) end)
  refused("invalid", "permute: 0 is not a dimension", "dimensions count from 1", function() return a:permute(1, 0) end)
  refused("invalid", "cat: [2, 3] and [2, 4]: sizes other than dimension 1 differ", "",
    function() return a:cat({ dev:ones { 2, 4 } }, 1) end)
  refused("invalid", "mean: dimension 1 of [2, 3] is named twice", "", function() return a:mean { 1, -2 } end)
  refused("invalid", "sum: there is no dimension 3 in a tensor with 2 dimensions", "", function() return a:sum(3) end)
  refused("invalid", "var: 'correction' was found among the dimensions (", "a separate table",
    function() return a:var { 1, correction = 0 } end)
  refused("invalid", "std: 'correction' was found among the dimensions (", "a separate table",
    function() return a:std({ correction = 0 }, true) end)
  refused("invalid", "sum: unknown option 'keepdims'", "did you mean 'keepdim'",
    function() return a:sum { keepdims = true } end)
  refused("invalid", "sort: unknown option 'decending'", "did you mean 'descending'",
    function() return a:sort { decending = true } end)
  refused("invalid", "flip: 'dims' was found among the dimensions (", "a list of numbers",
    function() return a:flip { dims = 1 } end)
  refused("invalid", "reshape: unknown option 'dtype' (", "it has no options",
    function() return a:reshape { 3, 2, dtype = "f64" } end)
  refused("invalid", "a dimension of size -1", "", function() return dev:zeros { -1, 2 } end)
  refused("invalid", "expected a whole number, got 1.5", "", function() return dev:zeros { 1.5 } end)
  refused("invalid", "has too many elements", "", function() return dev:zeros { 2 ^ 31, 2 ^ 31 } end)
  refused("invalid", "reshape: [2, 3] to [4, 2]: 6 elements do not fit", "", function() return a:reshape(4, 2) end)
end)

tap.test("tensors as positions", function()
  local x, mask, ids = dev:ones { 2, 3 }, a:gt(0), dev:zeros { 2, dtype = "i64" }
  refused("invalid", "a slice: bool[2, 3] cannot be used as a position (mistakes_test.lua:", "x:masked_fill(mask, 0)",
    function() x[mask] = 0 end)
  refused("invalid", "a slice: bool[2, 3] cannot be used as a position", "x:masked_select(mask)",
    function() return x[mask] end)
  refused("invalid", "a slice: i64[2] cannot be used as a position", "x:index_select(1, ids)",
    function() return x[ids] end)
  refused("invalid", "a slice: i64[2] cannot be used as a position", "x:scatter", function() x[{ {}, ids }] = x end)
end)

tap.test("types that do not go together", function()
  refused("invalid", "matmul: f32[2, 3] and f64[3, 2]: types differ", "cast",
    function() return a:matmul(dev:ones { 3, 2, dtype = "f64" }) end)
  local whole = dev:ones { 3, 2, dtype = "i32" }
  refused("invalid", "matmul: f32[2, 3] and i32[3, 2]: expected floating types", 't:to("f32")',
    function() return a:matmul(whole) end)
  refused("invalid", "linear: i32[3, 2] and f32[4, 2]: expected floating types", "",
    function() return whole:linear(dev:ones { 4, 2 }) end)
  refused("invalid", "einsum: f32[2, 3] and i32[3, 2]: expected floating types", "",
    function() return a:einsum("ij,jk->ik", whole) end)
  refused("invalid", "einsum: f32[2, 3] and f64[3, 2]: types differ", "",
    function() return a:einsum("ij,jk->ik", whole:to("f64")) end)
  refused("invalid", "conv2d: f32[1, 1, 4, 4] and i32[1, 1, 3, 2]: expected floating types", "",
    function() return dev:ones { 1, 1, 4, 4 }:conv2d(whole:reshape(1, 1, 3, 2)) end)
  refused("invalid", "cross_entropy: i32[3, 2] with i64[3]: expected a floating type for the first", "",
    function() return whole:cross_entropy(dev:zeros { 3, dtype = "i64" }) end)
  refused("invalid", "softmax: i64[2, 3]: expected a floating type", 't:to("f32")',
    function() return a:to("i64"):softmax() end)
  refused("invalid", "where: the condition is f32[2, 3]: expected bool", "x:gt(0)", function() return a:where(a, a) end)
  refused("state", "i64 tensors have no gradient", "f32",
    function() return dev:ones { 2, dtype = "i64" }:requires_grad_() end)
  refused("invalid", "add_: 0.5 to i64", "convert the tensor",
    function() return dev:ones { 2, dtype = "i64" }:add_(0.5) end)
  tap.equal(dev:ones { 2, dtype = "i64" }:add_(2):totable(), { 3, 3 })
  tap.equal(dev:ones { 2 }:add_(3, 0.5):totable(), { 2.5, 2.5 })
  tap.equal((a:gt(0) + a).dtype, "f32")
end)

tap.test("empty tensors: sums are 0, and nothing is chosen from nothing", function()
  local none = dev:ones { 0, 3 }
  tap.equal({ none:sum():item(), none:prod():item(), none:any():item(), none:all():item() }, { 0, 1, false, true })
  local mean = none:mean():item()
  tap.ok(mean ~= mean)
  for _, name in ipairs { "max", "min" } do
    refused("invalid", name .. ": [0, 3] has no elements to choose from", "", function() return none[name](none) end)
  end
  refused("invalid", "argmax: [0, 3] has no elements to choose from", "", function() return none:argmax(1) end)
  refused("invalid", "var: 0 elements of [0, 3]", "correction", function() return none:var() end)
  refused("invalid", "topk: k = 5 for [2, 3]", "", function() return a:topk(5) end)
end)

tap.test("labels and ids", function()
  local function labels(list, dtype) return dev:tensor(list, { dtype = dtype or "i64" }) end
  refused("invalid", "cross_entropy: labels of f32[2]: expected whole numbers", "",
    function() return a:cross_entropy(labels({ 0, 1 }, "f32")) end)
  refused("invalid", "cross_entropy: logits [2, 3] with labels [3]", "",
    function() return a:cross_entropy(labels { 0, 1, 2 }) end)
  refused("invalid", "cross_entropy: label 3 at row 1; there are classes 0 to 2", "labels and rows count from 0",
    function() return a:cross_entropy(labels { 1, 3 }):item() end)
  refused("invalid", "cross_entropy: label 3", "dev:check_numbers",
    function() return a:cross_entropy(labels { 1, 3 }):item() end)
  refused("invalid", "embedding: id 5 at position 1", "count from 0",
    function() return labels { 0, 5 }:embedding(dev:ones { 5, 2 }):totable() end)
  refused("invalid", "index 7 at position 0", "count from 0", function()
    return a:gather(1, dev:full { 1, 3, value = 7, dtype = "i64" }):totable()
  end)
  refused("invalid", "mse_loss: [2, 3] with targets of [2]: expected the same shape", "",
    function() return a:mse_loss(dev:ones { 2 }) end)
end)

tap.test("what is found late names its line while numbers are checked", function()
  local x = dev:ones { 2, 3 }
  local err = tap.raises("invalid", "there are classes 0 to 2 (mistakes_test.lua:", dev.check_numbers, dev, function()
    local loss = x:cross_entropy(dev:tensor({ 1, 3 }, { dtype = "i64" }))
    return loss:item()
  end)
  tap.ok(not err.hint:find("check_numbers", 1, true), err.hint)
  dev:limit_memory("1MB")
  refused("memory", "for fill's f32[1000, 1000]", "dev:check_numbers",
    function() return dev:ones { 1000, 1000 }:sum():item() end)
  tap.raises("memory", "for fill's f32[1000, 1000] (mistakes_test.lua:", dev.check_numbers, dev,
    function() return dev:ones { 1000, 1000 }:sum():item() end)
  dev:limit_memory(0)
end)

tap.test("backward", function()
  local w = leaf(2, 3)
  local loss = (w * w):sum()
  loss:backward()
  refused("state", "backward through sum a second time", "once", function() loss:backward() end)
  refused("invalid", "backward: the loss has the shape [2, 3]: expected one element", "sum()",
    function() (w * w):backward() end)
  refused("state", "backward: the f32[] loss depends on nothing that requires grad", "requires_grad_()",
    function() (a * a):sum():backward() end)
  local f = rille.compile(function(x) return (x * w):sum() end)
  refused("state", "depends on nothing", "call backward inside", function() f(a):backward() end)
  refused("state", "mul_: a leaf that requires grad, [2, 3]", "no_grad", function() w:mul_(2) end)
  refused("state", "add_: a leaf that requires grad", "no_grad", function() w:add_(1) end)
  refused("state", "needs has been overwritten in place", "", function()
    local y = w * 2
    local z = y * y
    rille.no_grad(function() y:detach():add_(1) end)
    z:sum():backward()
  end)
end)

tap.test("writing in place where elements share their memory", function()
  local wide = dev:ones { 1 }:expand(5)
  refused("invalid", "add_: f32[5] with strides [0]: several of its elements share one place in memory", "clone()",
    function() wide:add_(1) end)
  refused("invalid", "mul_: f32[4, 3] with strides [0, 1]", "clone()",
    function() dev:ones { 1, 3 }:expand(4, 3):mul_(2) end)
  refused("invalid", "mul_: f32[5] with strides [0]", "clone()", function() wide:mul_(dev:ones { 5 }) end)
  refused("invalid", "copy_: f32[5] with strides [0]", "clone()", function() wide:copy_(dev:arange { 5 }) end)
  tap.equal(wide:fill_(3):totable(), { 3, 3, 3, 3, 3 })       -- one value for all is no question
  tap.equal(wide:zero_():totable(), { 0, 0, 0, 0, 0 })
  tap.equal(dev:ones { 1 }:expand(1):add_(1):totable(), { 2 })
  tap.equal(wide:clone():add_(1):totable(), { 1, 1, 1, 1, 1 })
  tap.equal(dev:ones { 1, 3 }:expand(0, 3):add_(1):numel(), 0)
end)

tap.test("optimisers", function()
  local model = rille.nn.linear(3, 2)
  local opt = rille.optim.sgd(model, { lr = 0.1 })
  refused("state", "opt:step: none of the 2 parameters has a gradient (mistakes_test.lua:", "loss:backward()",
    function() opt:step() end)
  local moved = rille.optim.sgd(model, { lr = 0.1 })
  model:to("f64")
  model(dev:ones { 1, 3, dtype = "f64" }):sum():backward()
  refused("state", "none of the 2 parameters has a gradient", "before model:to(..)", function() moved:step() end)
  refused("invalid", "optimiser: lr = -1", "1e-3", function() return rille.optim.adamw({ leaf(2) }, { lr = -1 }) end)
  refused("invalid", "weight_decay = -1", "",
    function() return rille.optim.adamw({ leaf(2) }, { weight_decay = -1 }) end)
  refused("invalid", "optimiser: lr = nan", "", function() opt:set_lr(math.abs(0 / 0)) end)
  refused("invalid", "parameter 1, f32[2, 3], is not a leaf that requires grad", "w:requires_grad_()",
    function() return rille.optim.adamw { a } end)
  refused("invalid", "parameter 1, f32[2], is not a leaf", "computed from",
    function() return rille.optim.adamw { leaf(2) * 2 } end)
  local err = tap.raises("invalid", "unknown option 'learning_rate'", rille.optim.adamw, { leaf(2) },
    { learning_rate = 1 })
  local _, times = err.hint:gsub("weight_decay", "")
  tap.equal(times, 1)
end)

tap.test("fractions into whole numbers", function()
  local whole, parts = dev:ones({ 2 }, { dtype = "u8" }), dev:tensor { 1.7, -3 }
  for _, verb in ipairs { "add_", "sub_", "mul_" } do
    refused("invalid", verb .. ": f32 is written into u8[2]: fractions would be cut off", 'u:to("u8")',
      function() whole[verb](whole, parts) end)
  end
  refused("invalid", "div_: u8[2]: fractions would be cut off", "floor_divide", function() whole:div_(2) end)
  refused("invalid", "sub_: -0.5 to u8: the result would not be a whole number", "", function() whole:sub_(0.5) end)
  tap.equal(whole:totable(), { 1, 1 })
end)

tap.test("a value with history, written into memory", function()
  local w, into = dev:tensor({ 3, 4 }, { requires_grad = true }), dev:ones { 2 }
  for _, verb in ipairs { "copy_", "add_", "mul_" } do
    refused("state", verb .. ": a value that requires grad, [2], is written into [2]", "value:detach()",
      function() into[verb](into, w * 2) end)
  end
  refused("state", "a value that requires grad, [1], is written into [1]", "value:detach()",
    function() into[{ { 1, 1 } }] = w[{ { 1, 1 } }] end)
  tap.equal(into:totable(), { 1, 1 })
  into:add_((w * 2):detach())
  rille.no_grad(function() into:mul_(w) end)
  dev:zeros({ 2 }, { dtype = "i64" }):copy_(w)               -- whole numbers have no gradient
  tap.equal(into:totable(), { 21, 36 })
end)

tap.test("layers", function()
  local layer = rille.nn.linear(3, 2)
  refused("invalid", "expected a tensor, got nil", "with a tensor x", function() return layer() end)
  refused("invalid", "expected a tensor, got table", "dev:tensor(list)", function() return layer { 1, 2, 3 } end)
  refused("invalid", "linear: [2, 3] x [2, 4]", "", function() return rille.nn.linear(4, 2)(a) end)
  refused("invalid", "linear: i64[2, 3] and f32[", "", function() return layer(a:to("i64")) end)
  refused("invalid", "rille.nn.sequential: expected a list of modules, got Linear", "rille.nn.sequential { a, b }",
    function() return rille.nn.sequential(rille.nn.linear(3, 2), rille.nn.linear(2, 1)) end)
end)

tap.test("functions, models and their ids", function()
  refused("invalid", "rille.no_grad: expected a function, got 5", "function()", function() rille.no_grad(5) end)
  refused("invalid", "rille.autocast: expected a function, got nil", "model, x", function() rille.autocast("bf16") end)
  local model = rille.nn.gpt { layers = 1, heads = 2, width = 8, context = 8 }
  refused("invalid", "expected ids [batch, length], got Tensor i64[4]", "unsqueeze(1)",
    function() return model(dev:zeros { 4, dtype = "i64" }) end)
  refused("invalid", "the model sees 8 tokens at a time, got 9", "larger context",
    function() return model(dev:zeros { 1, 9, dtype = "i64" }) end)
  refused("invalid", "embedding: ids of f32[1, 4]: expected whole numbers", 't:to("i64")',
    function() return model(dev:zeros { 1, 4 }) end)
  model(dev:zeros { 1, 4, dtype = "i64" }):sum():backward()
  tap.ok(rille.optim.clip_grad_norm(model, 1):item() > 0)
end)

tap.test("a number in front where no operation has one, and a window that holds nothing of the image", function()
  local y = rille.device("cpu"):ones { 2 }
  tap.raises("invalid", "atan2", y.atan2, 1, y)
  local image = rille.device("cpu"):ones { 1, 1, 3, 3 }
  tap.raises("invalid", "dilation", image.max_pool2d, image, 2, { stride = 1, padding = 1, dilation = 4 })
end)

tap.test("values inside a compiled function", function()
  local function calls(fn)
    local f = rille.compile(fn)
    for _ = 1, 4 do f(a) end
  end
  refused("state", "a value is read inside a compiled function", "read it outside", function()
    calls(function(x) return x * x:sum():item() end)
  end)
  refused("invalid", "a compiled function's argument 1 is a table", "tensors", function()
    rille.compile(function(x) return x end)({ 1, 2 })
  end)
  refused("invalid", "a compiled function returns tensors; result 1 is 5", "",
    function() calls(function() return 5 end) end)
end)

tap.test("functions that gsub calls, and coroutines, end inside one another with an error", function()
  local function again(text) return (text:gsub(".", again)) end
  local function wrapped() return coroutine.wrap(wrapped)() end
  local function resumed() return assert(coroutine.resume(coroutine.create(resumed))) end
  local by_key = setmetatable({}, { __index = function(t) return (("a"):gsub(".", t)) end })
  for _, case in ipairs { function() again("a") end, wrapped, resumed, function() return by_key.a end } do
    local ok, err = pcall(case)
    tap.ok(not ok and tostring(err):find("stack overflow", 1, true), tostring(err))
  end
  tap.equal(("abc"):gsub("b", function() return "x" end), "axc")
  tap.equal({ ("a.b"):gsub("%.", { ["."] = "-" }, 1) }, { "a-b", 1 })
end)

tap.test("an error that a loop wraps again and again is made in a moment", function()
  local err
  for i = 1, 1000 do
    local _
    _, err = pcall(rille.error, { kind = "network", message = "again " .. i, cause = err })
  end
  local depth = 0
  while err do depth, err = depth + 1, err.cause end
  tap.ok(depth >= 10 and depth <= 100, depth)
end)

tap.test("load takes a table as environment, and nothing else", function()
  for _, where in ipairs { 5, "text", true, print, coroutine.create(print), rille.null } do
    tap.raises("invalid", "load: expected a table as environment", load, "return x", "=n", "t", where)
  end
  tap.equal(load("return x", "=n", "t", { x = 3 })(), 3)
end)

tap.test("chains of causes and their texts have an end", function()
  local function new() return select(2, pcall(rille.error, { kind = "invalid", message = "x" })) end
  local big, err = ("y"):rep(65000), new()
  for _ = 1, 3000 do
    local outer = new()
    outer.message, outer.hint, outer.traceback, outer.cause = big, big, big, err
    err = outer
  end
  err.cause.cause.cause = err  -- and a circle
  local ok, caught = pcall(rille.scope, function() error(err) end)
  tap.ok(not ok and #tostring(caught) < 2e6, #tostring(caught))
end)

tap.test("a wrong shape in a model names the layer", function()
  local x = dev:ones { 2, 5 }
  refused("invalid", "in layer 1 (Linear 4 -> 3): linear: [2, 5]", "", function()
    return rille.nn.mlp({ 4, 3, 2 })(x)
  end)
  local Net = rille.nn.class("Net", {
    init = function(self)
      self.first, self.blocks = rille.nn.linear(5, 4), { { fc = rille.nn.linear(3, 2) } }
    end,
    forward = function(self, y) return self.blocks[1].fc(self.first(y)) end,
  })
  refused("invalid", "in blocks.1.fc (Linear 3 -> 2): linear: [2, 4]", "", function() return Net()(x) end)
  local Own = rille.nn.class("Own", { forward = function(_, y) return y:matmul(y) end })
  refused("invalid", "in Own: matmul: [2, 5] x [2, 5]", "", function() return Own()(x) end)
  refused("invalid", "matmul: [2, 5] x [2, 5]", "", function() return x:matmul(x) end)
  tap.equal(select("#", rille.nn.class("Two", { forward = function() return 1, nil end })()()), 2)
end)

tap.done()
