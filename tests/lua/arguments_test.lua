-- run: ephemeral
-- What methods of tensors take: what they do not take is refused, and no result is a wrong one because of it.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")

local a, b = dev:ones { 2, 3 }, dev:ones { 4, 3 }

local function refused(text, hint, fn)
  local err = tap.raises("invalid", text, fn)
  if not (err.hint or ""):find(hint, 1, true) then error("no '" .. hint .. "' in the hint: " .. tostring(err), 2) end
end

tap.test("arguments that a method does not take", function()
  local image = dev:ones { 8, 8 }
  refused("rfft2: expected a table of options, got 8", "", function() return image:rfft2(8) end)
  refused("rfft: unknown option 'n'", "norm", function() return image:rfft { n = 16 } end)
  refused("fft: norm = 'orthogonal'", '"ortho"', function() return image:fft { norm = "orthogonal" } end)
  refused("round: takes no argument after the tensor, got 2 (", "(x * 100):round() / 100",
    function() return a:round(2) end)
  refused("div: takes one argument after the tensor, got a table as well", "floor_divide",
    function() return a:div(2, { rounding_mode = "floor" }) end)
  refused("cumsum: takes one argument", "flip", function() return a:cumsum(1, { reverse = true }) end)
  refused("softmax: takes one argument", 'x:to("f32")',
    function() return a:softmax(1, { dtype = "f32" }) end)
  refused("sum: takes 2 arguments after the tensor, got 3 as well", "a list",
    function() return a:sum(1, nil, 3) end)
  refused("matmul: takes one argument after the tensor, got a Tensor", "one after the other",
    function() return a:matmul(b, b) end)
  refused('view: takes one argument after the tensor, got "x"', "leave it out",
    function() return a:view({ 6 }, "x") end)
  refused("cat: unknown option 'dim'", "no options", function() return a:cat { b, dim = 1 } end)
  refused("pad's edges: unknown option 'mode'", "no options",
    function() return a:pad { 1, 1, mode = "reflect" } end)
  refused("add's alpha: expected", "", function() return a:add(a, { alpha = 2 }) end)
  refused("rfft: a transform of 0 numbers", "one or more", function() return a:rfft(0) end)
  local ids = dev:zeros { 2, dtype = "i64" }
  local whole, signs = { dtype = "i64" }, a:gt(0)
  local given = {
    add = { a, 1 }, sub = { a, 1 }, add_ = { a, 1 }, sub_ = { a, 1 }, mul = { a }, mul_ = { 2 }, div = { a },
    div_ = { 2 }, pow = { 2 }, maximum = { a }, lt = { a }, eq = { a }, logical_and = { a }, gelu = { "none" },
    clamp = { 0, 1 }, dropout = { 0.5, true }, masked_fill = { signs, 0 }, fill_ = { 1 }, copy_ = { a },
    gather = { 1, ids }, topk = { 1, 1, {} }, sort = { 1, {} }, argsort = { 1, {} }, tril = { 0 }, flip = { 1 },
    roll = { 1, 1 }, tile = { { 1, 1 } }, flatten = { 1, 2 }, pad = { { 1, 1 }, 0 }, split = { 1, 1 },
    stack = { a, 1 }, cat = { a, 1 }, chunk = { 2, 1 }, reshape = { { 6 } }, permute = { { 2, 1 } },
    transpose = { 1, 2 }, narrow = { 1, 1, 1 }, select = { 1, 1 }, unsqueeze = { 1 }, size = { 1 }, to = { "f32" },
    linear = { a, a }, matmul = { a }, layer_norm = { a, a, 1e-5 }, rms_norm = { a, 1e-6 },
    cross_entropy = { ids, {} }, nll_loss = { ids, {} }, mse_loss = { a, "mean" }, sum = { 1, {} }, max = { 1, {} },
    argmax = { 1, {} }, var = { 1, {} }, norm = { 2, 1, {} }, softmax = { 1 }, zeros_like = { whole },
    full_like = { 1, {} }, rfft = { 8, {} }, irfft = { 8, {} },
    fft = { {} }, rfft2 = { {} }, multinomial = { 1, {} }, masked_select = { signs },
    requires_grad_ = { false }, backward = { a }, set_grad = { a } }
  for _, name in ipairs { "neg", "exp", "relu", "round", "isnan", "logical_not", "zero_", "shape", "dim", "numel",
    "clone", "contiguous", "detach", "item", "totable", "bytes", "nonzero", "free" } do
    given[name] = {}
  end
  for name, list in pairs(given) do
    list[#list + 1] = "junk"
    refused(name .. ": takes ", "", function() return a[name](a, unpack(list)) end)
  end
  tap.equal({ (-a):sum():item(), a:exp(nil):shape()[1], a:softmax(1, nil):shape()[2] }, { -6, 2, 3 })   -- nils are none
end)

tap.test("which way of a Fourier transform is divided", function()
  local function near(a, b) tap.ok((a - b):abs():max():item() < 1e-5) end
  local z, image, line = dev:randn { 3, 6, 2 }, dev:randn { 4, 5 }, dev:randn { 2, 7 }
  local ortho, forward = { norm = "ortho" }, { norm = "forward" }
  near(z:fft(ortho), z:fft() / math.sqrt(6))
  near(z:ifft(ortho), z:ifft() * math.sqrt(6))
  near(z:fft(forward), z:fft() / 6)
  near(z:ifft(forward), z:ifft() * 6)
  near(z:fft2(ortho), z:fft2() / math.sqrt(18))
  near(line:rfft(4, ortho), line:rfft(4) / 2)
  near(line:rfft(forward), line:rfft() / 7)
  for _, how in ipairs { ortho, forward, { norm = "backward" } } do
    near(z:fft(how):ifft(how), z)
    near(z:fft2(how):ifft2(how), z)
    near(line:rfft(how):irfft(7, how), line)
    near(image:rfft2(how):irfft2(5, how), image)
  end
end)

tap.test("the size of a Fourier transform", function()
  local x, image = dev:tensor { 1, 0, 0, 0 }, dev:randn { 4, 5 }
  for _, n in ipairs { 3, 8 } do                         -- cropped, zeros added
    local sized = n < 5 and image:narrow(2, 1, n) or image:pad { 0, n - 5 }
    tap.equal(image:rfft(n):totable(), sized:rfft():totable())
  end
  tap.equal(x:rfft(4):totable(), x:rfft():totable())
  local w = dev:ones { 2, 5, requires_grad = true }
  w:rfft(3):square():sum():backward()
  tap.equal(w.grad:select(2, 5):totable(), { 0, 0 })
  tap.ok(w.grad:select(2, 1):sum():item() > 0)
end)

tap.test("alpha of add and sub", function()
  local x, y = dev:tensor { 1, 2 }, dev:tensor { 3, 5 }
  tap.equal(x:add(y, 2):totable(), { 7, 12 })
  tap.equal(x:sub(y, 2):totable(), { -5, -8 })
  tap.equal(x:add(3, 2):totable(), { 7, 8 })
  tap.equal(x:sub(3, 2):totable(), { -5, -4 })
  tap.equal(x:add(y, nil):totable(), { 4, 7 })
  tap.equal(x:clone():add_(y, 2):totable(), { 7, 12 })
  tap.equal(x:clone():sub_(y, 2):totable(), { -5, -8 })
  tap.equal(x:clone():sub_(3, 2):totable(), { -5, -4 })
  local u, v = x:clone():requires_grad_(), y:clone():requires_grad_()
  local step = rille.compile(function(one)
    local loss = (u:add(v, 3) * u:sub(v, 2) * one):sum()
    loss:backward()
    return loss
  end)
  for _ = 1, 3 do
    u:set_grad(nil)
    v:set_grad(nil)
    step(dev:ones { 2 })
    tap.equal(u.grad:totable(), { 2 * 1 + 3, 2 * 2 + 5 })          -- p^2 + p q - 6 q^2
    tap.equal(v.grad:totable(), { 1 - 12 * 3, 2 - 12 * 5 })
  end
end)

tap.test("draws with replacement", function()
  local p = dev:tensor { { 0, 1, 0 }, { 0, 0, 2 } }
  tap.equal(p:multinomial():totable(), { 1, 2 })
  tap.equal(p:multinomial(1):totable(), { { 1 }, { 2 } })
  tap.equal(p:multinomial(4, { replacement = true }):totable(), { { 1, 1, 1, 1 }, { 2, 2, 2, 2 } })
  local drawn = dev:ones { 3 }:multinomial(3000, { replacement = true })
  tap.equal(drawn:shape(), { 3000 })
  for k = 0, 2 do
    local share = drawn:eq(k):sum():item() / 3000
    tap.ok(share > 0.28 and share < 0.39, tostring(share))
  end
  tap.raises("invalid", "5 draws without replacement", function() return p:multinomial(5) end)
  tap.raises("invalid", "0 draws from [2, 3]", function() return p:multinomial(0) end)
end)

tap.done()
