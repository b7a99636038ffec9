-- run: ephemeral
-- Operations whose result would have more elements than can be counted are refused: such a tensor's memory would be
-- smaller than its shape.
local rille = require "rille"
local tap = require "tap"
local d = rille.device("cpu")
local A, B = 69632, 264917625139441  -- A * B = 2^64 + 4096

local empty, one, row = function(...) return d:zeros { ... } end, d:zeros { 1, 1 }, d:zeros { A, 1 }
local numbers = d:zeros { A, dtype = "i64" }
local image = d:zeros { 1, 1, 1, 1 }

local tries = {
  linear = function() return empty(A, 0):linear(empty(B, 0)) end,
  matmul = function() return empty(A, 0):matmul(empty(0, B)) end,
  einsum = function() return empty(A, 0):einsum("ai,bi->ab", empty(B, 0)) end,
  empty = function() return empty(A, B, 0):sum(3) end,
  expand = function() return one:expand { A, B } end,
  reshape = function() return d:zeros { 4096 }:reshape { A, B } end,
  view = function() return d:zeros { 4096 }:view { A, B } end,
  add = function() return row + one:expand { 1, B } end,
  tile = function() return one:tile { A, B } end,
  pad = function() return row:pad { 0, B } end,
  cat = function() local wide = row:expand { A, 14e9 } return wide:cat(wide, 2) end,
  repeat_interleave = function() return row:repeat_interleave(B, 2) end,
  one_hot = function() return numbers:one_hot(B) end,
  interpolate = function() return image:interpolate { size = { A, B } } end,
  outer = function() return d:zeros { 1 }:expand { 2 ^ 30 }:unsqueeze(2) * d:zeros { 1 }:expand { 2 ^ 34 } end,
  attention = function()
    return d:zeros { 1, 1, A, 0 }:scaled_dot_product_attention(d:zeros { 1, 1, 1, 0 }, image:expand { 1, 1, 1, B })
  end,
  embedding = function() return one:expand { 2, 2 ^ 44 }:embedding(numbers) end,
  index_select = function() return one:expand { 2, 2 ^ 44 }:index_select(1, numbers) end,
  conv = function()
    return d:zeros { 1, 1, 1, 1 }:conv_transpose2d(image:expand { 1, 1, 2 ^ 24, 2 ^ 24 }, nil, { dilation = 2 ^ 29 })
  end,
}

for name, try in pairs(tries) do
  tap.test(name, function()
    local ok, err = pcall(try)
    tap.ok(not ok and err.kind == "invalid", ok and tostring(err) or tostring(err):sub(1, 200))
  end)
end
tap.test("pieces of a size that wraps", function()
  local sizes = {}
  for i = 1, 2048 do sizes[i] = 2 ^ 53 end
  sizes[2049] = 16
  local x = d:zeros { 16 }
  tap.raises("invalid", "along dimension 1: the sizes do not make 16", x.split, x, sizes)
  tap.raises("invalid", "narrow:", x.narrow, x, 1, 2, 2 ^ 53)
end)

tap.test("products of more than eight dimensions", function()
  local a = d:ones { 1, 1, 1, 1, 1, 1, 1, 1 }
  tap.raises("invalid", "at most 8 are possible", a.einsum, a, "abcdefgh,ijklmnop->abcdefghijklmnop", a)
end)

tap.test("a compiled function is recorded anew for a gradient of another type", function()
  local p = d:zeros { 1000, dtype = "f16" }:requires_grad_()
  local function clip() rille.optim.clip_grad_norm({ p }, 1e-3) end
  p:set_grad(d:ones { 1000, dtype = "f16" })
  clip()
  local f = rille.compile(function(x) clip() return x + 1 end)
  local x = d:ones { 4 }
  for _ = 1, 3 do f(x):sum():item() end
  p:set_grad(d:ones { 1000, dtype = "f16" })
  tap.equal(f(x):totable(), { 2, 2, 2, 2 })
  tap.equal(p.grad:sum():item() > 0, true)
end)

tap.test("filling an expanded tensor fills each place once", function()
  local x = d:zeros { 3, 1 }
  x:expand { 3, 2 ^ 45 }:narrow(1, 2, 2):fill_(7)
  x:narrow(1, 1, 1):expand { 2 ^ 45, 1 }:zero_()
  tap.equal(x:flatten():totable(), { 0, 7, 7 })
end)
tap.done()
