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
    self.attention = nn.attention(o.width, o.heads, { kv_heads = o.kv_heads, head_width = o.head_width, causal = true,
      bias = false, fused = false, deviation = 0.02 })
    self.gate, self.up, self.down = linear(o.width, o.hidden), linear(o.width, o.hidden), linear(o.hidden, o.width)
  end,
  forward = function(self, x, turns, cache)
    x = x + self.attention(self.norm1(x), { rope = turns, cache = cache })
    local y = self.norm2(x)
    return x + self.down(self.gate(y):silu() * self.up(y))
  end,
})

-- Computes the rotary angles of Llama 3.1: frequencies with fewer than `low_freq_factor` turns in the original
-- context are divided by `factor`, frequencies with more than `high_freq_factor` turns are unchanged, with a smooth
-- transition in between.
local function scaled_angles(dev, places, width, base, s)
  local speed = (dev:arange { width / 2, dtype = "f64" } * (-2 / width * math.log(base))):exp()
  local turns = speed * (s.original_max_position_embeddings / (2 * math.pi))
  local kept = ((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)):clamp(0, 1)
  speed = speed * (kept + (1 - kept) / s.factor)
  local angle = dev:arange { places, dtype = "f64" }:reshape(-1, 1) * speed
  return angle:cos():to("f32"), angle:sin():to("f32")
end

-- Reads rope_scaling as written in config.json; nil or false: no scaling.
local function check_scaling(given)
  if not given then return false end
  local verb = "rille.nn.llama: rope_scaling"
  local kind = type(given) == "table" and (given.rope_type or given.type)
  if kind == "default" then return false end
  if kind ~= "llama3" then
    tools.invalid(("%s is of type %s; only \"llama3\" is supported"):format(verb, tostring(kind)),
      'rope_scaling = { rope_type = "llama3", factor = 8, low_freq_factor = 1, high_freq_factor = 4, ' ..
      "original_max_position_embeddings = 8192 }")
  end
  local numbers = { "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings" }
  native.check_options(given, verb, { "rope_type", "type", unpack(numbers) })
  for _, name in ipairs(numbers) do
    if type(given[name]) ~= "number" or given[name] <= 0 then
      tools.invalid(("%s: %s = %s; a number above 0 is needed"):format(verb, name, tostring(given[name])))
    end
  end
  if given.high_freq_factor <= given.low_freq_factor then
    tools.invalid(("%s: high_freq_factor = %g must be above low_freq_factor = %g"):format(verb, given.high_freq_factor,
      given.low_freq_factor))
  end
  return given
end

local Llama = nn.class("Llama", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens = nn.embedding(o.vocab, o.width)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o) end
    self.norm = nn.rms_norm(o.width, { eps = o.eps })
    if not o.tied then self.head = linear(o.width, o.vocab) end
    -- The metatable keeps the table out of the model's tensors, so the angles are not saved. They are made in init
    -- and not in the first call, because a compiled function could not repeat their creation.
    self.angles = setmetatable({ width = o.head_width, base = o.rope_base, scaling = o.rope_scaling,
      device = rille.device().name }, {})
    self.angles.cos, self.angles.sin = self:make_angles(self.angles.device)
    native.own_memory({ self.angles.cos, self.angles.sin }, "rotary angles")
  end,
  make_angles = function(self, device)
    local angles = self.angles
    if angles.scaling then
      return scaled_angles(rille.device(device), self.context, angles.width, angles.base, angles.scaling)
    end
    return rille.device(device):rope_angles { self.context, angles.width, base = angles.base }
  end,
  -- returns { cos, sin }, each [length, d/2], for the positions of ids that follow `before` earlier ids
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
---[batch, length], it returns logits [batch, length, vocab]; generate as in nn.gpt. `weights` loads Hugging Face's
---safetensors files by name; sizes are as in its config.json, and so are rope_base (`rope_theta`), rope_scaling (of
---`rope_type = "llama3"`), eps (`rms_norm_eps`) and tied (`tie_word_embeddings`).
---@param options table layers, heads, width, context, vocab; kv_heads (heads), head_width (width / heads), hidden (8/3
---of the width, rounded up to a multiple of 256), eps (1e-5), rope_base (10000; Llama 3: 500000), rope_scaling (none;
---Llama 3.1 and later: a table), tied (false), weights (a file, its index, or their folder), seed (0)
---@return Module
---@mark ephemeral
---@error state the file has other names or shapes, or is of a model with more layers or more in a layer
---@error denied without a grant to read `weights`
local function llama(options)
  local o = tools.options("rille.nn.llama", options, { kv_heads = false, head_width = false, hidden = false,
    eps = 1e-5, rope_base = 10000, rope_scaling = false, tied = false, weights = false, seed = 0 },
    { "layers", "heads", "width", "context", "vocab" })
  o.rope_scaling = check_scaling(o.rope_scaling)
  o.head_width = tools.head_width("rille.nn.llama", o.width, o.heads, o.head_width)
  o.kv_heads = o.kv_heads or o.heads
  o.hidden = o.hidden or math.ceil(8 * o.width / 3 / 256) * 256
  tools.check_shared("rille.nn.llama", "heads", o.heads, "kv_heads", o.kv_heads)
  local model = nn.with_seed(o.seed, function() return Llama(o) end)
  if o.weights then tools.adopt(model, "rille.nn.llama", o.weights, theirs) end
  return model
end

return llama
