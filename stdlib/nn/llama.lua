-- rille.nn.llama: the transformer of Llama 2 and 3.
local generating = require "rille.nn.generate"
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false, deviation = 0.02 }) end

local Attention = nn.class("LlamaAttention", {
  init = function(self, o, layer)
    local d = o.width / o.heads
    self.heads, self.kv_heads, self.layer, self.context = o.heads, o.kv_heads, layer, o.context
    self.q, self.k, self.v = linear(o.width, o.heads * d), linear(o.width, o.kv_heads * d), linear(o.width,
      o.kv_heads * d)
    self.out = linear(o.heads * d, o.width)
  end,
  forward = function(self, x, cos, sin, cache)
    local batch, length, width = x:size(1), x:size(2), x:size(3)
    local d = width / self.heads
    local q = self.q(x):reshape(batch, length, self.heads, d):transpose(2, 3):rope(cos, sin)
    local k = self.k(x):reshape(batch, length, self.kv_heads, d):transpose(2, 3):rope(cos, sin)
    local v = self.v(x):reshape(batch, length, self.kv_heads, d):transpose(2, 3)
    if cache then k, v = generating.remember(cache, self.layer, k, v, self.context) end
    local y = q:scaled_dot_product_attention(k, v, { causal = true })
    return self.out(y:transpose(2, 3):reshape(batch, length, width))
  end,
})

local Block = nn.class("LlamaBlock", {
  init = function(self, o, layer)
    self.norm1, self.norm2 = nn.rms_norm(o.width, { eps = o.eps }), nn.rms_norm(o.width, { eps = o.eps })
    self.attention = Attention(o, layer)
    self.gate, self.up, self.down = linear(o.width, o.hidden), linear(o.width, o.hidden), linear(o.hidden, o.width)
  end,
  forward = function(self, x, cos, sin, cache)
    x = x + self.attention(self.norm1(x), cos, sin, cache)
    local y = self.norm2(x)
    return x + self.down(self.gate(y):silu() * self.up(y))
  end,
})

local Llama = nn.class("Llama", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens = nn.embedding(o.vocab, o.width)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o, i) end
    self.norm = nn.rms_norm(o.width, { eps = o.eps })
    if not o.tied then self.head = linear(o.width, o.vocab) end
    -- With a metatable it is no part of the model: what it keeps is not saved.
    self.angles = setmetatable({ width = o.width / o.heads, base = o.rope_base }, {})
  end,
  -- cos and sin [length, d/2] of the places from `first` on, counting from 1
  turns = function(self, first, length)
    local kept = self.angles
    if not kept.cos then
      kept.cos, kept.sin = rille.device():rope_angles { self.context, kept.width, base = kept.base }
    end
    return kept.cos:narrow(1, first, length), kept.sin:narrow(1, first, length)
  end,
  forward = function(self, ids)
    local length = tools.length_of(self, ids)
    local cos, sin = self:turns(1, length)
    local x = self.tokens(ids)
    for _, block in ipairs(self.blocks) do x = block(x, cos, sin) end
    return tools.logits(self, self.norm(x))
  end,
  forward_cached = function(self, ids, cache)
    local length = ids:size(2)
    local cos, sin = self:turns(cache.length + 1, length)
    local x = self.tokens(ids)
    for _, block in ipairs(self.blocks) do x = block(x, cos, sin, cache) end
    cache.length = cache.length + length
    return tools.logits(self, self.norm(x:select(2, -1)))
  end,
  generate = generating.generate,
})

local parts = { norm1 = "input_layernorm", norm2 = "post_attention_layernorm", ["attention.q"] = "self_attn.q_proj",
  ["attention.k"] = "self_attn.k_proj", ["attention.v"] = "self_attn.v_proj", ["attention.out"] = "self_attn.o_proj",
  gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj" }

local function theirs(name)
  if name == "tokens.weight" then return "embed_tokens.weight" end
  if name == "head.weight" then return "lm_head.weight" end
  local block, part = name:match("^blocks%.(%d+)%.(.+)%.weight$")
  if not block then return name end
  return ("layers.%d.%s.weight"):format(block - 1, parts[part])
end

---A Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU layers of `hidden`, no biases. Called with ids
---[batch, length], it gives logits [batch, length, vocab]; generate as nn.gpt's. With `weights`, those of Hugging
---Face's safetensors file are taken over by name; sizes are those of its config.json.
---@param options table layers, heads, width, context, vocab; kv_heads (heads), hidden (8/3 of the width, rounded up to
---a multiple of 256), eps (1e-5), rope_base (10000; Llama 3: 500000), tied (false), weights, seed (0)
---@return Module
---@mark ephemeral
---@error state the file has other names or shapes
local function llama(options)
  local o = tools.options("rille.nn.llama", options, { kv_heads = false, hidden = false, eps = 1e-5, rope_base = 10000,
    tied = false, weights = false, seed = 0 }, { "layers", "heads", "width", "context", "vocab" })
  o.kv_heads = o.kv_heads or o.heads
  o.hidden = o.hidden or math.ceil(8 * o.width / 3 / 256) * 256
  if o.heads % o.kv_heads ~= 0 then
    tools.invalid(("rille.nn.llama: heads = %d cannot share kv_heads = %d"):format(o.heads, o.kv_heads),
      "heads must be a multiple of kv_heads")
  end
  local model = nn.with_seed(o.seed, function() return Llama(o) end)
  if o.weights then tools.adopt(model, "rille.nn.llama", rille.data.load_tensors(o.weights), theirs) end
  return model
end

return llama
