-- The gradients of a small transformer on a device beside those in float64 on the CPU, from the same weights and batch.
-- In bf16 they are also held against an oracle: float32 on the CPU, each value that autocast keeps in bf16, and its
-- gradient, rounded to it. That is the error which the type itself makes; a device may add little to it.
-- usage: rille run gradients.lua [--device cuda:0] [--dtype bf16] [--layers 4]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args {
  device = "cpu", dtype = "f32", layers = 1, width = 64, heads = 4, context = 32, batch = 4, vocab = 128,
  bound = 1e-5,                                  -- f32: relative L2
  of_oracle = 1.3, cosine = 0.999,               -- bf16: relative L2, of the oracle's; and the angle to float64
}
local c, h, t, b = args.width, args.heads, args.context, args.batch

local sizes = { { "table", args.vocab, c } }
for layer = 1, args.layers do
  for _, s in ipairs { { "norm1", c }, { "shift1", c }, { "qkv", 3 * c, c }, { "out", c, c }, { "norm2", c },
    { "shift2", c }, { "fc", 4 * c, c }, { "proj", c, 4 * c } } do
    sizes[#sizes + 1] = { s[1] .. "." .. layer, s[2], s[3] }
  end
end
sizes[#sizes + 1] = { "head", args.vocab, c }

local function as_it_is(x) return x end
local function through_bf16(x) return x:to("bf16"):to("f32") end  -- rounds the value, and backward its gradient

-- `round` stands where autocast has values in the smaller type: operands and results of products, and what is
-- computed from nothing else.
local function loss_of(p, ids, labels, round)
  local function linear(x, weight) return round(round(x):linear(round(weight))) end
  local x = ids:embedding(p.table)
  for layer = 1, args.layers do
    local function of(name) return p[name .. "." .. layer] end
    local parts = { linear(x:layer_norm(of "norm1", of "shift1"), of "qkv"):chunk(3, 3) }
    for i = 1, 3 do parts[i] = parts[i]:reshape(b, t, h, c / h):transpose(2, 3) end
    local y = round(parts[1]:scaled_dot_product_attention(parts[2], parts[3], { causal = true }))
    x = x + linear(y:transpose(2, 3):reshape(b, t, c), of "out")
    x = x + linear(round(linear(x:layer_norm(of "norm2", of "shift2"), of "fc"):gelu()), of "proj")
  end
  return linear(x, p.head):cross_entropy(labels)
end

-- {relative L2 of all, of the worst parameter, cosine of all} of gradients beside those in float64.
local function compare(parameters, reference)
  local difference, own, size, product, worst = 0, 0, 0, 0, 0
  for _, s in ipairs(sizes) do
    local got, want = parameters[s[1]].grad:to(rille.device "cpu"):to "f64", reference[s[1]].grad
    local off, square = (got - want):square():sum():item(), want:square():sum():item()
    difference, size = difference + off, size + square
    own, product = own + got:square():sum():item(), product + (got * want):sum():item()
    worst = math.max(worst, math.sqrt(off / math.max(square, 1e-30)))
  end
  return { all = math.sqrt(difference / size), worst = worst, cosine = product / math.sqrt(own * size) }
end

return rille.step("gradients", { args = args }, function()
  local cpu, dev = rille.device "cpu", rille.device(args.device)
  local half = args.dtype ~= "f32"
  cpu:seed(2)
  local ids = cpu:randint { b, t, low = 0, high = args.vocab }
  local labels = cpu:randint { b, t, low = 0, high = args.vocab }
  local there, oracle, reference = {}, {}, {}
  for _, s in ipairs(sizes) do
    local start = cpu:randn { s[2], s[3] }
    start = (s[3] and start * 0.1 or start * 0.1 + 1):detach()
    there[s[1]] = start:clone():to(dev):detach():requires_grad_()
    oracle[s[1]] = start:clone():detach():requires_grad_()
    reference[s[1]] = start:to("f64"):detach():requires_grad_()
  end
  rille.autocast(args.dtype, loss_of, there, ids:to(dev), labels:to(dev), as_it_is):backward()
  loss_of(reference, ids, labels, as_it_is):backward()
  local got = compare(there, reference)
  local figures = {
    { name = "relative L2 of all gradients", value = got.all, unit = "" },
    { name = "relative L2 of the worst parameter", value = got.worst, unit = "" },
  }
  if not half and not (got.all <= args.bound) then
    error(("the gradients differ by %.3g (relative L2), at most %g"):format(got.all, args.bound))
  elseif half then
    loss_of(oracle, ids, labels, through_bf16):backward()
    local rounded = compare(oracle, reference)
    local of_oracle = got.all / rounded.all
    if not (of_oracle <= args.of_oracle and got.cosine >= args.cosine) then
      error(("the gradients differ by %.3g (relative L2), the oracle's by %.3g, at most %g times it; cosine %.6f, at "
        .. "least %g"):format(got.all, rounded.all, args.of_oracle, got.cosine, args.cosine))
    end
    figures[3] = { name = "relative L2, of a rounding oracle's", value = of_oracle, unit = "" }
    figures[4] = { name = "cosine with float64's", value = got.cosine, unit = "" }
  end
  return { figures = figures, fallbacks = native.fallbacks(dev) }
end)
