-- The gradients of a small transformer on a device beside those in float64 on the CPU, from the same weights and batch.
-- usage: rille run gradients.lua [--device cuda:0]
local rille = require "rille"

local args = rille.args { device = "cpu", width = 64, heads = 4, context = 32, batch = 4, vocab = 128, bound = 1e-5 }
local c, h, t, b = args.width, args.heads, args.context, args.batch

local sizes = {
  { "table", args.vocab, c }, { "norm1", c }, { "shift1", c }, { "qkv", 3 * c, c }, { "out", c, c }, { "norm2", c },
  { "shift2", c }, { "fc", 4 * c, c }, { "proj", c, 4 * c }, { "head", args.vocab, c },
}

local function loss_of(p, ids, labels)
  local x = ids:embedding(p.table)
  local y = x:layer_norm(p.norm1, p.shift1):linear(p.qkv)
  local parts = { y:chunk(3, 3) }
  for i = 1, 3 do parts[i] = parts[i]:reshape(b, t, h, c / h):transpose(2, 3) end
  y = parts[1]:scaled_dot_product_attention(parts[2], parts[3], { causal = true })
  x = x + y:transpose(2, 3):reshape(b, t, c):linear(p.out)
  x = x + x:layer_norm(p.norm2, p.shift2):linear(p.fc):gelu():linear(p.proj)
  return x:linear(p.head):cross_entropy(labels)
end

return rille.step("gradients", { args = args }, function()
  local cpu, dev = rille.device "cpu", rille.device(args.device)
  cpu:seed(2)
  local ids = cpu:randint { b, t, low = 0, high = args.vocab }
  local labels = cpu:randint { b, t, low = 0, high = args.vocab }
  local there, reference = {}, {}
  for _, s in ipairs(sizes) do
    local start = cpu:randn { s[2], s[3] }
    start = (s[3] and start * 0.1 or start * 0.1 + 1):detach()
    there[s[1]] = (dev == cpu and start:clone() or start:to(dev)):detach():requires_grad_()
    reference[s[1]] = start:to("f64"):detach():requires_grad_()
  end
  local loss = dev == cpu and loss_of(there, ids, labels) or loss_of(there, ids:to(dev), labels:to(dev))
  local wanted = loss_of(reference, ids, labels)
  loss:backward()
  wanted:backward()
  local all_difference, all_size, worst = 0, 0, 0
  for _, s in ipairs(sizes) do
    local got, want = there[s[1]].grad, reference[s[1]].grad
    if dev ~= cpu then got = got:to(cpu) end
    local difference = (got:to "f64" - want):square():sum():item()
    local size = want:square():sum():item()
    all_difference, all_size = all_difference + difference, all_size + size
    worst = math.max(worst, math.sqrt(difference / math.max(size, 1e-30)))
  end
  local overall = math.sqrt(all_difference / all_size)
  if not (overall <= args.bound) then
    error(("the gradients differ by %.3g (relative L2), at most %g"):format(overall, args.bound))
  end
  return { figures = {
    { name = "relative L2 of all gradients", value = overall, unit = "" },
    { name = "relative L2 of the worst parameter", value = worst, unit = "" },
  } }
end)
