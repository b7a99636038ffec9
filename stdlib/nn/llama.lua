-- rille.nn.llama: the transformer of Llama 2 and 3.
local generating = require "rille.nn.generate"
local native = require "rille.native"
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false, deviation = 0.02 }) end

local Block = nn.class("LlamaBlock", {
  init = function(self, o)
    self.norm1, self.norm2 = nn.rms_norm(o.width, { eps = o.eps }), nn.rms_norm(o.width, { eps = o.eps })
    self.attention = nn.attention(o.width, o.heads, { kv_heads = o.kv_heads, causal = true, bias = false,
      fused = false, deviation = 0.02 })
    self.gate, self.up, self.down = linear(o.width, o.hidden), linear(o.width, o.hidden), linear(o.hidden, o.width)
  end,
  forward = function(self, x, turns, cache)
    x = x + self.attention(self.norm1(x), { rope = turns, cache = cache })
    local y = self.norm2(x)
    return x + self.down(self.gate(y):silu() * self.up(y))
  end,
})

local Llama = nn.class("Llama", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens = nn.embedding(o.vocab, o.width)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o) end
    self.norm = nn.rms_norm(o.width, { eps = o.eps })
    if not o.tied then self.head = linear(o.width, o.vocab) end
    -- With a metatable they are no part of the model: what it keeps is not saved. Made here and not at the first call,
    -- which a compiled function could not repeat.
    self.angles = setmetatable({ width = o.width / o.heads, base = o.rope_base, device = rille.device().name }, {})
    self.angles.cos, self.angles.sin = self:make_angles(self.angles.device)
    native.own_memory({ self.angles.cos, self.angles.sin }, "rotary angles")
  end,
  make_angles = function(self, device)
    return rille.device(device):rope_angles { self.context, self.angles.width, base = self.angles.base }
  end,
  -- { cos, sin } [length, d/2] of the places of ids, the first of them behind `before` others
  turns = function(self, ids, before)
    local cos, sin = self.angles.cos, self.angles.sin
    if ids.device ~= self.angles.device then cos, sin = self:make_angles(ids.device) end
    return { cos:narrow(1, before + 1, ids:size(2)), sin:narrow(1, before + 1, ids:size(2)) }
  end,
  forward = function(self, ids)
    tools.length_of(self, ids)
    local turns = self:turns(ids, 0)
    local x = self.tokens(ids)
    for _, block in ipairs(self.blocks) do x = block(x, turns) end
    return tools.logits(self, self.norm(x))
  end,
  forward_cached = function(self, ids, cache)
    local turns = self:turns(ids, cache.length)
    cache.context = self.context
    local x = self.tokens(ids)
    for _, block in ipairs(self.blocks) do x = block(x, turns, cache) end
    cache.length = cache.length + ids:size(2)
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
  tools.check_shared("rille.nn.llama", "heads", o.heads, "kv_heads", o.kv_heads)
  local model = nn.with_seed(o.seed, function() return Llama(o) end)
  if o.weights then tools.adopt(model, "rille.nn.llama", rille.data.load_tensors(o.weights), theirs) end
  return model
end

return llama
