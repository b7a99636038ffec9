-- run: durable
-- rille.nn.attention beside the same sums in plain operations, in f64: values, and gradients of all that has one.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()
local nn = rille.nn

local function random(...) return dev:randn({ ... }):to("f64") end

local function layer(a, name, x)
  local joint, l = rawget(a, "qkv"), rawget(a, name)
  local w, b = (joint or l).weight, rawget(joint or l, "bias")
  if joint then
    local rows = a.kv_heads * a.width / a.heads
    local first = ({ q = 1, k = a.width + 1, v = a.width + rows + 1 })[name]
    w = w:narrow(1, first, name == "q" and a.width or rows)
    b = b and b:narrow(1, first, name == "q" and a.width or rows)
  end
  x = x:matmul(w:transpose(1, 2))
  return b and x + b or x
end

-- A mask, lengths or causal: 0 where a key is seen, far below elsewhere.
local function hidden(a, t, s, o)
  local keys, out = dev:arange { s }, dev:zeros { 1, 1, t, s, dtype = "f64" }
  local function hide(where) out = out + where:to("f64") * -1e300 end
  if a.causal then hide(keys:gt(dev:arange { s - t, s }:reshape(-1, 1))) end
  if o.lengths then hide(keys:ge(o.lengths:reshape(-1, 1, 1, 1))) end
  if o.mask then
    if o.mask.dtype == "bool" then hide(o.mask:logical_not()) else out = out + o.mask end
  end
  return out
end

local function direct(a, x, o, p)
  local from, b, t, d = o.memory or x, x:size(1), x:size(2), a.width / a.heads
  local function heads(name, y)
    local n = name == "q" and a.heads or a.kv_heads
    y = layer(a, name, y):reshape(b, y:size(2), n, d):transpose(2, 3)
    if o.rope and name ~= "v" then y = y:rope(o.rope[1], o.rope[2]) end
    return y:repeat_interleave(a.heads / n, 2)
  end
  local q, k, v = heads("q", x), heads("k", from), heads("v", from)
  local scores = q:matmul(k:transpose(3, 4)) / math.sqrt(d) + hidden(a, t, k:size(3), o)
  local weights = scores:softmax(-1)
  if p then weights = weights:dropout(p, true) end
  local y = weights:matmul(v):transpose(2, 3):reshape(b, t, a.width):matmul(a.out.weight:transpose(1, 2))
  return rawget(a.out, "bias") and y + a.out.bias or y
end

local function gradients(a, x, memory, loss)
  loss:backward()
  local list = {}
  local function take(name, tensor)
    list[name] = assert(tensor.grad, "no gradient for " .. name):clone()
    tensor:set_grad(nil)
  end
  for _, p in ipairs(a:parameters()) do take(p.name, p.tensor) end
  take("x", x)
  if memory then take("memory", memory) end
  return list
end

local function near(name, got, want)
  local off = (got - want):abs():max():item()
  tap.ok(off < 1e-10, ("%s: off by %g"):format(name, off))
end

local function agrees(name, a, x, o, p)
  local weight = random(x:size(1), x:size(2), x:size(3))
  dev:seed(3)
  local got = a(x, o)
  dev:seed(3)
  local want = direct(a, x, o, p)
  near(name, got, want)
  local ours = gradients(a, x, o.memory, (got * weight):sum())
  local theirs = gradients(a, x, o.memory, (want * weight):sum())
  for which, grad in pairs(theirs) do near(name .. ", gradient of " .. which, ours[which], grad) end
end

local function attention(options)
  options.seed = 4
  local a = nn.attention(8, 4, options):to("f64")
  rille.no_grad(function()                       -- biases are zero at first
    for _, p in ipairs(a:parameters()) do if p.tensor:dim() == 1 then p.tensor:copy_(random(p.tensor:size(1))) end end
  end)
  return a
end

local function leaf(...) return random(...):detach():requires_grad_() end

tap.test("values and gradients are those of the sums", function()
  dev:seed(1)
  local x = leaf(2, 5, 8)
  local cos, sin = dev:rope_angles { 5, 2, dtype = "f64" }
  for name, options in pairs { plain = {}, causal = { causal = true }, groups = { kv_heads = 2, causal = true },
    ["one head of keys"] = { kv_heads = 1 }, apart = { fused = false, kv_heads = 2 },
    ["no bias"] = { bias = false, causal = true }, ["apart, no bias"] = { bias = false, fused = false } } do
    local a = attention(options)
    agrees(name, a, x, {})
    agrees(name .. ", turned", a, x, { rope = { cos, sin } })
    agrees(name .. ", padded", a, x, { lengths = dev:tensor({ 3, 5 }, { dtype = "i64" }) })
    agrees(name .. ", bool mask", a, x, { mask = dev:ones { 5, 5 }:tril(1):gt(0) })
    agrees(name .. ", mask that is added", a, x, { mask = random(2, 1, 5, 5) })
  end
end)

-- oneDNN's products refuse rows that lie on one another, as a mean's gradient does.
tap.test("gradients of what is averaged over its positions, and of heads of width 1", function()
  dev:seed(9)
  local function slopes(shape, dtype, options, reduced)
    local leaves = {}
    for i = 1, 3 do leaves[i] = random(unpack(shape)):to(dtype):detach():requires_grad_() end
    local o = leaves[1]:scaled_dot_product_attention(leaves[2], leaves[3], options)
    if reduced then o = o:mean(3) end
    o:sum():backward()
    return leaves
  end
  for _, shape in ipairs { { 1, 1, 3, 1 }, { 2, 2, 3, 1 }, { 2, 2, 1, 4 }, { 1, 2, 70, 3 } } do
    for _, options in ipairs { {}, { mask = dev:ones { shape[3], shape[3] }:gt(0) } } do
      for _, reduced in ipairs { true, false } do
        dev:seed(9)
        local got = slopes(shape, "f32", options, reduced)
        dev:seed(9)
        local want = slopes(shape, "f64", options, reduced)
        for i = 1, 3 do
          local off = (got[i].grad:to("f64") - want[i].grad):abs():max():item()
          tap.ok(off < 1e-5, ("%s, operand %d: %g"):format(table.concat(shape, "x"), i, off))
        end
      end
    end
  end
end)

tap.test("it looks at a memory", function()
  dev:seed(2)
  local x, same, wide = leaf(2, 3, 8), leaf(2, 6, 8), leaf(2, 6, 12)
  agrees("of its width", attention {}, x, { memory = same })
  agrees("of its width, groups", attention { kv_heads = 2, bias = false }, x, { memory = same })
  agrees("made for it", attention { memory_width = 8 }, x, { memory = same })
  local a = attention { memory_width = 12, kv_heads = 2 }
  tap.equal(a.k.weight:shape(), { 4, 12 })
  agrees("of another width", a, x, { memory = wide, lengths = dev:tensor({ 1, 6 }, { dtype = "i32" }) })
end)

tap.test("dropout of its weights: in training what the sums with it give, in evaluation nothing", function()
  dev:seed(6)
  local x, memory = leaf(2, 5, 8), leaf(2, 6, 8)
  local lengths = dev:tensor({ 2, 5 }, { dtype = "i64" })
  for name, options in pairs { plain = {}, causal = { causal = true }, groups = { kv_heads = 2, causal = true } } do
    options.dropout = 0.4
    local a = attention(options)
    agrees(name, a, x, {}, 0.4)
    agrees(name .. ", padded", a, x, { lengths = lengths }, 0.4)
    agrees(name .. ", bool mask", a, x, { mask = dev:ones { 5, 5 }:tril(1):gt(0) }, 0.4)
    agrees(name .. ", mask that is added", a, x, { mask = random(1, 4, 5, 5) }, 0.4)
    agrees(name .. ", in evaluation", a:eval(), x, { lengths = lengths })
  end
  agrees("memory", attention { dropout = 0.4 }, x, { memory = memory }, 0.4)
end)

tap.test("several models may be in evaluation at once, in a workflow, too", function()
  local a, b = nn.attention(8, 2):eval(), nn.attention(8, 2):eval()
  tap.equal({ a.training, b.out.training }, { false, false })
  tap.equal({ a:train():eval().training, b:train().training }, { false, true })
end)

tap.test("a query that sees no key gives zeros, with and without dropout", function()
  local x, lengths = leaf(2, 3, 8), dev:tensor({ 0, 3 }, { dtype = "i64" })
  for _, p in ipairs { 0, 0.3 } do
    for _, how in ipairs { { lengths = lengths }, { mask = dev:full { 3, 3, value = -math.huge, dtype = "f64" } } } do
      local a = attention { dropout = p }
      local y = a(x, how)
      near("zeros", y:narrow(1, 1, 1), a.out.bias:expand(1, 3, 8))
      y:sum():backward()
      tap.ok(x.grad:abs():max():item() < 1e9, "its gradient is finite")
      x:set_grad(nil)
    end
  end
end)

tap.test("half types: about the values of f32, with dropout in its place too", function()
  for _, dtype in ipairs { "bf16", "f16" } do
    local a = nn.attention(8, 2, { causal = true, seed = 4, dropout = 0.5 })
    local x, mask = dev:randn { 2, 5, 8 }, dev:ones { 5, 5 }:gt(0)
    local want = a:eval()(x, { mask = mask })
    a:to(dtype)
    local got = a(x:to(dtype), { mask = mask })
    tap.equal(got.dtype, dtype)
    tap.ok((got:to("f32") - want):abs():max():item() < 0.05)
    tap.ok(a:train()(x:to(dtype)):to("f32"):abs():max():item() < 10)
  end
end)

tap.test("f16: products of queries and keys beyond 65504, scaled within it, with dropout too", function()
  local a = nn.attention(64, 1, { causal = true, bias = false, fused = false, dropout = 0.5 })
  for _, part in ipairs { a.q, a.k, a.v, a.out } do
    rille.no_grad(function() part.weight:detach():copy_(dev:eye { 64 }) end)
  end
  a:to("f16")
  -- Of rows that are 40 or -40 everywhere the product with itself is 102400, and each place looks at itself alone.
  local x = (dev:randn { 1, 5, 64 }:gt(0):to("f32") * 80 - 40):to("f16")
  local y = a(x):to("f32")
  tap.equal((y * (y - x:to("f32") * 2)):abs():max():item(), 0)     -- dropped, or doubled
  tap.equal(a:eval()(x):totable(), x:totable())
end)

tap.test("a cache keeps keys and values of earlier calls", function()
  local cos, sin = dev:rope_angles { 7, 2, dtype = "f64" }
  local function turns(first, n) return { cos:narrow(1, first, n), sin:narrow(1, first, n) } end
  for _, options in ipairs { { causal = true }, { causal = true, kv_heads = 2, fused = false } } do
    rille.no_grad(function()
      local a, b, x = attention(options), attention(options), random(2, 7, 8)
      local whole = b(a(x, { rope = turns(1, 7) }), {})
      local cache = { length = 0, context = 7 }        -- of both layers
      for _, part in ipairs { { 1, 3 }, { 4, 1 }, { 5, 3 } } do
        local first, n = part[1], part[2]
        local y = b(a(x:narrow(2, first, n), { rope = turns(first, n), cache = cache }), { cache = cache })
        cache.length = cache.length + n
        near("from " .. first, y, whole:narrow(2, first, n))
      end
      tap.raises("invalid", "keeps 7 of at most 7 places, and 1 come", a, x:narrow(2, 1, 1), { cache = cache })
      tap.raises("invalid", "keeps 0 of at most nil places", a, x, { cache = { length = 0 } })
    end)
  end
  rille.no_grad(function()                              -- of a memory: looked at once
    local a, x, memory = attention { memory_width = 12 }, random(2, 3, 8), random(2, 5, 12)
    local want, cache = a(x, { memory = memory }), { length = 0, context = 3 }
    for i = 1, 3 do
      near("memory, place " .. i, a(x:narrow(2, i, 1), { memory = memory, cache = cache }), want:narrow(2, i, 1))
      cache.length = cache.length + 1
      memory = random(2, 5, 12)
    end
  end)
end)

tap.test("compiled, it is one product for queries, keys and values, and one operation between", function()
  local a, x = nn.attention(8, 2, { causal = true, dropout = 0.1, seed = 1 }):eval(), dev:randn { 2, 4, 8 }
  local f = rille.compile(function(t) return a(t) end)
  local want = a(x):totable()
  for _ = 1, 3 do tap.equal(f(x):totable(), want) end
  local names = {}
  for _, row in ipairs(f:explain().operations) do names[row.name] = (names[row.name] or 0) + row.calls end
  tap.equal(names, { linear = 2, attention = 1 })
end)

tap.test("the models are made of it, under the names of their weights", function()
  local function names(model)
    local list = {}
    for _, p in ipairs(model:parameters()) do
      local name = p.name:match("^blocks%.1%.attention%.(.+)$")
      if name then list[#list + 1] = name .. " " .. table.concat(p.tensor:shape(), "x") end
    end
    return table.concat(list, ", ")
  end
  local sizes = { layers = 1, heads = 4, width = 8, context = 4, vocab = 8 }
  tap.equal(names(nn.gpt(sizes)), "out.bias 8, out.weight 8x8, qkv.bias 24, qkv.weight 24x8")
  sizes.kv_heads = 2
  tap.equal(names(nn.llama(sizes)), "k.weight 4x8, out.weight 8x8, q.weight 8x8, v.weight 4x8")
  sizes.kv_heads = nil
  tap.equal(names(nn.bert(sizes)),
    "k.bias 8, k.weight 8x8, out.bias 8, out.weight 8x8, q.bias 8, q.weight 8x8, v.bias 8, v.weight 8x8")
  tap.equal(tostring(nn.gpt(sizes).blocks[1].attention), "Attention: 288 parameters")
end)

tap.test("what does not go together is refused", function()
  tap.raises("invalid", "width is needed", nn.attention, nil, 4)
  tap.raises("invalid", "heads is needed", nn.attention, 8)
  tap.raises("invalid", "heads = 0", nn.attention, 8, 0)
  tap.raises("invalid", "width = 10 cannot be shared among heads = 4", nn.attention, 10, 4)
  tap.raises("invalid", "heads = 4 cannot be shared among kv_heads = 3", nn.attention, 8, 4, { kv_heads = 3 })
  tap.raises("invalid", "kv_heads = 1.5", nn.attention, 8, 4, { kv_heads = 1.5 })
  tap.raises("invalid", "memory_width = x", nn.attention, 8, 4, { memory_width = "x" })
  tap.raises("invalid", "dropout = 1;", nn.attention, 8, 4, { dropout = 1 })
  tap.raises("invalid", "did you mean 'causal'", nn.attention, 8, 4, { casual = true })
  tap.raises("invalid", "one layer for x of 8 and a memory of 12", nn.attention, 8, 4,
    { memory_width = 12, fused = true })
  local a, x = nn.attention(8, 4), dev:randn { 2, 3, 8 }
  tap.raises("invalid", "x is [2, 3, 4]; [batch, length, 8] is needed", a, dev:randn { 2, 3, 4 })
  tap.raises("invalid", "x is [3, 8]", a, dev:randn { 3, 8 })
  tap.raises("invalid", "x is nil", a)
  tap.raises("invalid", "the memory is [2, 3, 12]", a, x, { memory = dev:randn { 2, 3, 12 } })
  tap.raises("invalid", "did you mean 'lengths'", a, x, { length = 3 })
  tap.raises("invalid", "rope is 5", a, x, { rope = 5 })
  tap.raises("invalid", "rope cannot be used with a memory", a, x, { memory = x, rope = { x, x } })
  tap.raises("invalid", "made for a memory, but none was given", nn.attention(8, 4, { memory_width = 12 }), x)
  tap.raises("invalid", "expected whole numbers [2]", a, x, { lengths = dev:ones { 3 } })
  tap.raises("invalid", "expected bool or the same type", a, x, { mask = dev:ones { 4, 4 } })
end)

tap.done()
