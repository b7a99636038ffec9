-- rille.nn.attention: multi-head attention for the transformers of rille.nn.
local native = require "rille.native"
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local call_options = { "memory", "mask", "lengths", "rope", "cache" }

-- Appends keys and values [batch, heads, positions, head width] to the cache of layer number `layer`.
local function remember(layer, cache, k, v)
  local kept, places = cache[layer], k:size(3)
  if type(cache.length) ~= "number" or type(cache.context) ~= "number" or cache.length + places > cache.context then
    tools.invalid(("attention: the cache keeps %s of at most %s places, and %d come"):format(tostring(cache.length),
      tostring(cache.context), places), "cache = { length = 0, context = the most places }")
  end
  if not kept then
    local dev, b, g = rille.device(k.device), k:size(1), k:size(2)
    kept = { k = dev:zeros { b, g, cache.context, k:size(4), dtype = k.dtype },
      v = dev:zeros { b, g, cache.context, v:size(4), dtype = v.dtype } }
    native.own_memory({ kept.k, kept.v }, "kept keys and values")
    cache[layer] = kept
  end
  kept.k:narrow(3, cache.length + 1, places):copy_(k)
  kept.v:narrow(3, cache.length + 1, places):copy_(v)
  return kept.k:narrow(3, 1, cache.length + places), kept.v:narrow(3, 1, cache.length + places)
end

-- Returns a bool mask that is true for keys a query must not see, or nil if all keys are visible. The queries belong
-- to the last positions of the keys.
local function unseen(q, k, how)
  local dev, hidden = rille.device(q.device), nil
  local function hide(more) hidden = hidden and hidden:logical_or(more) or more end
  local keys = dev:arange { k:size(3) }
  if how.causal then hide(keys:gt(dev:arange { k:size(3) - q:size(3), k:size(3) }:reshape(-1, 1))) end
  if how.lengths then hide(keys:ge(how.lengths:to("i64"):reshape(-1, 1, 1, 1))) end
  if how.mask then hide(how.mask.dtype == "bool" and how.mask:logical_not() or how.mask:eq(-math.huge)) end
  return hidden
end

-- Computes scaled_dot_product_attention with dropout on the attention weights. As in that function, a query without
-- visible keys gives zeros.
local function with_dropout(q, k, v, how, p)
  local b, h, t, d = q:size(1), q:size(2), q:size(3), q:size(4)
  local g, s = k:size(2), k:size(3)
  local least = q.dtype == "f16" and -65504 or -1e30
  -- Scale q before the product, which could otherwise exceed f16's maximum of 65504.
  q = q * (1 / math.sqrt(d))
  local scores = q:reshape(b, g, h / g * t, d):matmul(k:transpose(3, 4)):reshape(b, h, t, s)
  local hidden = unseen(q, k, how)
  if how.mask and how.mask.dtype ~= "bool" then scores = scores + how.mask:detach() end
  if hidden then scores = scores:masked_fill(hidden, least) end
  local weights = scores:softmax(-1)
  if hidden then weights = weights:masked_fill(hidden, 0) end
  return weights:dropout(p, true):reshape(b, g, h / g * t, s):matmul(v):reshape(b, h, t, v:size(4))
end

local function check_input(what, x, width)
  if native.kind(x) and x:dim() == 3 and x:size(3) == width then return end
  tools.invalid(("attention: %s is %s; [batch, length, %d] is needed"):format(what,
    native.kind(x) and "[" .. table.concat(x:shape(), ", ") .. "]" or tostring(x), width))
end

local function check_call(self, x, o)
  native.check_options(o, "attention", call_options)
  check_input("x", x, self.width)
  if o.memory then check_input("the memory", o.memory, self.memory_width) end
  if o.rope and (o.memory or type(o.rope) ~= "table" or not native.kind(o.rope[1]) or not native.kind(o.rope[2])) then
    tools.invalid(o.memory and "attention: rope cannot be used with a memory" or
      "attention: rope is " .. tostring(o.rope), "rope = { cos, sin }, from dev:rope_angles")
  end
  if not o.memory and self.memory_width ~= self.width then
    tools.invalid("attention: it was made for a memory, but none was given", "attn(x, { memory = .. })")
  end
end

local Attention = nn.class("Attention", {
  init = function(self, width, heads, o)
    local d = o.head_width
    self.head_width = d
    self.width, self.heads, self.kv_heads, self.causal = width, heads, o.kv_heads, o.causal
    self.dropout, self.memory_width = o.dropout, o.memory_width
    local function layer(inputs, outputs, deviation)
      return nn.linear(inputs, outputs, { bias = o.bias, deviation = deviation })
    end
    if o.fused then
      self.qkv = layer(width, (heads + 2 * o.kv_heads) * d, o.deviation)
    else
      self.q = layer(width, heads * d, o.deviation)
      self.k = layer(self.memory_width, o.kv_heads * d, o.deviation)
      self.v = layer(self.memory_width, o.kv_heads * d, o.deviation)
    end
    self.out = layer(heads * d, width, o.out_deviation or o.deviation)
  end,

  -- Computes queries, keys or values of x, [batch, heads, length, d]: by a separate layer, or by rows of the joint
  -- layer.
  part = function(self, name, x)
    local joint = rawget(self, "qkv")
    local d = self.head_width
    local heads = name == "q" and self.heads or self.kv_heads
    local y
    if joint then
      local first = name == "q" and 1 or self.heads * d + (name == "v" and self.kv_heads * d or 0) + 1
      local bias = rawget(joint, "bias")
      y = x:linear(joint.weight:narrow(1, first, heads * d), bias and bias:narrow(1, first, heads * d))
    else
      y = self[name](x)
    end
    return y:reshape(x:size(1), x:size(2), heads, d):transpose(2, 3)
  end,

  -- Computes queries, keys and values of x by the joint layer, in one product.
  parts = function(self, x)
    local batch, length, d = x:size(1), x:size(2), self.head_width
    local function heads(y, n) return y:reshape(batch, length, n, d):transpose(2, 3) end
    local y, q, k, v = self.qkv(x), nil, nil, nil
    if self.heads == self.kv_heads then
      q, k, v = y:chunk(3, -1)
    else
      local first, rows = self.heads * d, self.kv_heads * d
      q, k, v = y:narrow(-1, 1, first), y:narrow(-1, first + 1, rows), y:narrow(-1, first + rows + 1, rows)
    end
    return heads(q, self.heads), heads(k, self.kv_heads), heads(v, self.kv_heads)
  end,

  forward = function(self, x, options)
    local o = options or {}
    check_call(self, x, o)
    local from, kept = o.memory or x, o.memory and o.cache and o.cache[self]
    local q, k, v
    if rawget(self, "qkv") and not o.memory then
      q, k, v = self:parts(x)
      if o.rope then q, k = q:rope(o.rope[1], o.rope[2]), k:rope(o.rope[1], o.rope[2]) end
    else
      q = self:part("q", x)
      if o.rope then q = q:rope(o.rope[1], o.rope[2]) end
      if kept then k, v = kept.k, kept.v else
        k = self:part("k", from)
        if o.rope then k = k:rope(o.rope[1], o.rope[2]) end
        v = self:part("v", from)
      end
    end
    if o.cache and o.memory then o.cache[self] = kept or { k = k, v = v }
    elseif o.cache then k, v = remember(self, o.cache, k, v) end
    local how = { causal = self.causal, mask = o.mask, lengths = o.lengths }
    local y
    if self.dropout > 0 and self.training then
      if (q.dtype == "bf16" or q.dtype == "f16") and q.device:find "^cuda" then
        native.note_fallback(rille.device(q.device), "tensor cores", "attention with dropout",
          "dropout needs the weights in memory, from products and a softmax; dropout = 0 uses fused kernels")
      end
      y = with_dropout(q, k, v, how, self.dropout)
    else y = q:scaled_dot_product_attention(k, v, how) end
    return self.out(y:transpose(2, 3):reshape(x:size(1), x:size(2), self.heads * self.head_width))
  end,
})

---@class rille.nn.AttentionOptions
---@field kv_heads? integer heads of keys and values, shared by groups of query heads (heads)
---@field head_width? integer width of a head (width / heads)
---@field causal? boolean a position sees no later one (false)
---@field bias? boolean of all four layers (true)
---@field dropout? number of the attention weights, in training (0)
---@field memory_width? integer width of the memory, which every call must pass
---@field fused? boolean queries, keys and values by one layer `qkv` [(heads + 2 kv_heads) d, width], which is faster;
---otherwise by `q`, `k` and `v`. true; with memory_width false
---@field deviation? number of the initial weights (see linear)
---@field out_deviation? number of the initial weights of `out` (deviation)
---@field seed? integer of the weights

---Multi-head attention: x [batch, length, width] -> the same shape; each head has d = head_width. Called as
---attn(x, options), with
---`memory` [batch, places, memory_width]: the source of keys and values (x);
---`mask`: broadcasts to [batch, heads, length, places]; bool, true where a position is visible, or added to the scores;
---`lengths` [batch]: the number of valid positions, for padded texts;
---`rope` = { cos, sin }: rotates queries and keys by the angles of their positions (`dev:rope_angles`);
---`cache` = { length = 0, context = n }: a table that keeps keys and values of earlier calls, for all layers that it is
---passed to; after the last of them the caller adds the new positions to `length`. A memory is cached once.
---
---With dropout a training step stores the scores, [batch, heads, length, places]; otherwise it is a single operation.
---On a GPU in bf16 and f16 that operation uses tensor cores, also with masks and lengths, for heads of 64 and 128;
---`compiled:explain()` and `dev:profile` report where it does not.
---@param width integer size of the last dimension, a multiple of heads unless head_width is given
---@param heads integer how many
---@param options? rille.nn.AttentionOptions what differs from the defaults
---@return Module
---@mark ephemeral
---@error invalid sizes that do not go together; an input of another shape, when it is called
---@example
---local dev, attn = rille.device(), rille.nn.attention(32, 4, { causal = true, kv_heads = 2 })
---local y = attn(dev:randn { 2, 10, 32 })
local function attention(width, heads, options)
  local verb = "rille.nn.attention"
  tools.check_sizes(verb, { width = width or false, heads = heads or false })
  local memory_width = type(options) == "table" and options.memory_width
  local o = tools.options(verb, options, { kv_heads = heads, head_width = false, causal = false, bias = true,
    dropout = 0, memory_width = width, fused = not memory_width, deviation = false, out_deviation = false,
    seed = false }, { "kv_heads", "memory_width" })
  o.head_width = tools.head_width(verb, width, heads, o.head_width)
  tools.check_shared(verb, "heads", heads, "kv_heads", o.kv_heads)
  if type(o.dropout) ~= "number" or o.dropout < 0 or o.dropout >= 1 then
    tools.invalid(("%s: dropout = %s; from 0 to below 1 is needed"):format(verb, tostring(o.dropout)))
  end
  if o.fused and o.memory_width ~= width then
    tools.invalid(("%s: one layer for x of %d and a memory of %d"):format(verb, width, o.memory_width),
      "leave `fused` out")
  end
  return nn.with_seed(o.seed or nil, function() return Attention(width, heads, o) end)
end

return attention
