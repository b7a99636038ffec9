-- rille.nn: layers and models. A module is a plain table: tensors that require grad are its parameters, modules and
-- lists of modules in it are its parts. It is called like a function. Names of parameters are paths:
-- "blocks.1.mlp.fc.weight".
local native = require "rille.native"
local rille = require "rille"

local nn = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- Modules -------------------------------------------------------------------------------------------------------------

local methods = {}
local marks = setmetatable({}, { __mode = "k" })   -- metatables of modules
local off = setmetatable({}, { __mode = "k" })     -- models in eval mode -> their number
local numbers = 0

local function is_module(v)
  local mt = type(v) == "table" and getmetatable(v)
  return type(mt) == "table" and marks[mt] == true
end

-- Visits the parameters in the order of their names; lists in the order of their positions.
local function walk(part, path, visit)
  for key, v in pairs(part) do
    local name = path == "" and tostring(key) or path .. "." .. tostring(key)
    if native.kind(v) then
      if v.requires_grad then visit(name, v, part, key) end
    elseif is_module(v) or (type(v) == "table" and getmetatable(v) == nil) then
      walk(v, name, visit)
    end
  end
end

---The parameters: a list of { name =, tensor = }, in the order of their names.
---@return { name: string, tensor: Tensor }[]
---@mark ephemeral
function methods:parameters()
  local list = {}
  walk(self, "", function(name, tensor) list[#list + 1] = { name = name, tensor = tensor } end)
  return list
end

---The number of trainable values.
---@return integer
---@mark ephemeral
function methods:count()
  local n = 0
  walk(self, "", function(_, tensor) n = n + tensor:numel() end)
  return n
end

---Moves the parameters to a device; gives the module.
---@param device Device from rille.device()
---@return Module
---@mark ephemeral
function methods:to(device)
  if type(device) ~= "userdata" then
    invalid("model:to: expected a device, got " .. tostring(device), "model:to(rille.device())")
  end
  walk(self, "", function(_, tensor, part, key) part[key] = tensor:to(device) end)
  return self
end

local function set_training(part, on)
  if is_module(part) then rawset(part, "training", on) end
  for _, v in pairs(part) do
    if type(v) == "table" and (is_module(v) or getmetatable(v) == nil) then set_training(v, on) end
  end
end

-- Which models are in eval mode is part of the key of compiled functions.
local function publish_mode()
  local list = {}
  for _, number in pairs(off) do list[#list + 1] = number end
  table.sort(list)
  native.set_mode(table.concat(list, ","))
end

---Training mode (dropout works): the mode that modules are made in.
---@return Module
---@mark ephemeral
function methods:train()
  set_training(self, true)
  if off[self] then off[self] = nil; publish_mode() end
  return self
end

---Evaluation mode (no dropout).
---@return Module
---@mark ephemeral
function methods:eval()
  set_training(self, false)
  if not off[self] then
    numbers = numbers + 1
    off[self] = numbers
    publish_mode()
  end
  return self
end

---Copies parameters by name; every one must be there, in its shape.
---@param state table<string, Tensor> models, optimizers and data sets: a list, or a table with names
---@mark ephemeral
function methods:load_state(state)
  rille.no_grad(function()
    walk(self, "", function(name, tensor)
      local source = state[name]
      if not source then
        rille.error { kind = "state", message = "model:load_state: there is no parameter '" .. name .. "'",
          hint = "the state belongs to another model: check layers, width and names" }
      end
      tensor:detach():copy_(source)
    end)
  end)
end

---Makes a class of modules. `init(self, options)` fills the table; `forward(self, ...)` is the call.
---    local Mlp = nn.class("Mlp", { init = function(self, o) self.fc = nn.linear(o.width, 4 * o.width) end,
---                                  forward = function(self, x) return self.fc(x):gelu() end })
---    local mlp = Mlp { width = 64 }
---@param name string what it is called in errors and in print
---@param spec table  init, forward, and any further methods
---@return fun(options): Module
---@mark ephemeral
function nn.class(name, spec)
  if type(spec) ~= "table" or type(spec.forward) ~= "function" then
    invalid("rille.nn.class '" .. tostring(name) .. "': a function `forward` is needed")
  end
  local mt = { __name = name, __call = function(self, ...) return spec.forward(self, ...) end }
  mt.__index = function(_, key)
    local found = spec[key]
    if found == nil then found = methods[key] end
    return found
  end
  mt.__tostring = function(self) return ("%s: %d parameters"):format(name, methods.count(self)) end
  marks[mt] = true
  return function(...)
    local self = setmetatable({ training = true }, mt)
    if spec.init then spec.init(self, ...) end
    return self
  end
end

---Calls fn with the device's random numbers restarted at `seed`, and puts them back after.
---@param seed integer? where they start; nil leaves them as they are
---@param fn function called without arguments
---@return any result what fn returned
---@mark ephemeral
function nn.with_seed(seed, fn)
  if seed == nil then return fn() end
  local device = rille.device()
  local before = device:random_state()
  device:seed(seed)
  local result = { pcall(fn) }
  device:set_random_state(before)
  if not result[1] then error(result[2], 0) end
  return unpack(result, 2)
end

local function normal(shape, deviation)
  return (rille.device():randn(shape) * deviation):detach():requires_grad_()
end

local function check_sizes(verb, options)
  for name, n in pairs(options) do
    if n == false then invalid(("%s: %s is needed"):format(verb, name), name .. " = a whole number from 1 on") end
    if type(n) ~= "number" or n < 1 or n ~= math.floor(n) then
      invalid(("%s: %s = %s; a whole number from 1 on is needed"):format(verb, name, tostring(n)))
    end
  end
end

-- Layers --------------------------------------------------------------------------------------------------------------

local Linear = nn.class("Linear", {
  init = function(self, inputs, outputs, options)
    local deviation = options.deviation or 1 / math.sqrt(inputs)
    self.weight = normal({ outputs, inputs }, deviation)
    if options.bias ~= false then self.bias = rille.device():zeros { outputs, requires_grad = true } end
  end,
  forward = function(self, x) return x:linear(self.weight, rawget(self, "bias")) end,
})

---x -> x W' + b. weight [outputs, inputs]: normal with deviation 1/sqrt(inputs); bias: zero.
---@param inputs integer size of the last dimension of what comes in
---@param outputs integer size of the last dimension of what goes out
---@param options? { bias: boolean, deviation: number, seed: integer } see above
---@return Module
---@mark ephemeral
function nn.linear(inputs, outputs, options)
  check_sizes("rille.nn.linear", { inputs = inputs or false, outputs = outputs or false })
  native.check_options(options, "rille.nn.linear", { "bias", "deviation", "seed" })
  options = options or {}
  return nn.with_seed(options.seed, function() return Linear(inputs, outputs, options) end)
end

local Embedding = nn.class("Embedding", {
  init = function(self, count, width, options) self.weight = normal({ count, width }, options.deviation or 0.02) end,
  forward = function(self, ids) return ids:embedding(self.weight) end,
})

---ids (integers from 0) -> rows of weight [count, width]: normal with deviation 0.02.
---@param count integer how many different ids there are
---@param width integer size of the last dimension
---@param options? { deviation: number, seed: integer } see above
---@return Module
---@mark ephemeral
function nn.embedding(count, width, options)
  check_sizes("rille.nn.embedding", { count = count or false, width = width or false })
  native.check_options(options, "rille.nn.embedding", { "deviation", "seed" })
  options = options or {}
  return nn.with_seed(options.seed, function() return Embedding(count, width, options) end)
end

local LayerNorm = nn.class("LayerNorm", {
  init = function(self, width, options)
    self.eps = options.eps or 1e-5
    self.weight = rille.device():ones { width, requires_grad = true }
    self.bias = rille.device():zeros { width, requires_grad = true }
  end,
  forward = function(self, x) return x:layer_norm(self.weight, self.bias, self.eps) end,
})

---Normalises the last dimension, then scales and shifts it.
---@param width integer size of the last dimension
---@param options? { eps: number } see above
---@return Module
---@mark ephemeral
function nn.layer_norm(width, options)
  check_sizes("rille.nn.layer_norm", { width = width or false })
  native.check_options(options, "rille.nn.layer_norm", { "eps" })
  return LayerNorm(width, options or {})
end

local Dropout = nn.class("Dropout", {
  init = function(self, p) self.p = p end,
  forward = function(self, x) return x:dropout(self.p, self.training) end,
})

---Zeroes each value with probability p while training.
---@param p number probability, from 0 to below 1
---@return Module
---@mark ephemeral
function nn.dropout(p)
  if type(p) ~= "number" or p < 0 or p >= 1 then
    invalid("rille.nn.dropout: p = " .. tostring(p) .. "; from 0 to below 1 is needed")
  end
  return Dropout(p)
end

-- GPT -----------------------------------------------------------------------------------------------------------------

local Attention = nn.class("Attention", {
  init = function(self, o)
    self.heads = o.heads
    self.qkv = Linear(o.width, 3 * o.width, { deviation = 0.02 })
    self.out = Linear(o.width, o.width, { deviation = 0.02 / math.sqrt(2 * o.layers) })
  end,
  forward = function(self, x)
    local batch, length, width = x:size(1), x:size(2), x:size(3)
    local heads = self.heads
    local q, k, v = self.qkv(x):chunk(3, -1)
    q = q:reshape(batch, length, heads, width / heads):transpose(2, 3)
    k = k:reshape(batch, length, heads, width / heads):transpose(2, 3)
    v = v:reshape(batch, length, heads, width / heads):transpose(2, 3)
    local y = q:scaled_dot_product_attention(k, v, { causal = true })
    return self.out(y:transpose(2, 3):reshape(batch, length, width))
  end,
})

local Block = nn.class("Block", {
  init = function(self, o)
    self.norm1, self.norm2 = LayerNorm(o.width, {}), LayerNorm(o.width, {})
    self.attention = Attention(o)
    self.fc = Linear(o.width, 4 * o.width, { deviation = 0.02 })
    self.proj = Linear(4 * o.width, o.width, { deviation = 0.02 / math.sqrt(2 * o.layers) })
    self.dropout = Dropout(o.dropout)
  end,
  forward = function(self, x)
    x = x + self.dropout(self.attention(self.norm1(x)))
    return x + self.dropout(self.proj(self.fc(self.norm2(x)):gelu()))
  end,
})

local Gpt = nn.class("Gpt", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens = Embedding(o.vocab, o.width, {})
    self.positions = normal({ o.context, o.width }, 0.01)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o) end
    self.norm = LayerNorm(o.width, {})
    if not o.tied then self.head = Linear(o.width, o.vocab, { bias = false, deviation = 0.02 }) end
  end,
  -- ids [batch, length] -> logits [batch, length, vocab]
  forward = function(self, ids)
    local length = ids:size(2)
    if length > self.context then
      invalid(("the model sees %d tokens at a time, got %d"):format(self.context, length),
        "cut the input, or make the model with a larger context")
    end
    local x = self.tokens(ids) + self.positions:narrow(1, 1, length)
    for _, block in ipairs(self.blocks) do x = block(x) end
    x = self.norm(x)
    local head = rawget(self, "head")
    if head then return head(x) end
    return x:linear(self.tokens.weight)
  end,
  -- Documented at nn.gpt.
  generate = function(self, prompt, options)
    native.check_options(options, "model:generate", { "length", "temperature", "seed", "stop" })
    options = options or {}
    if type(prompt) ~= "string" or prompt == "" then
      invalid("model:generate: expected a prompt, a text of at least one byte")
    end
    local training, text = self.training, prompt
    self:eval()
    local ok, err = pcall(nn.with_seed, options.seed or 0, function()
      rille.no_grad(function()
        for _ = 1, options.length or 100 do
          local window = text:sub(-self.context)
          local logits = self(native.encode(window)):select(2, -1) / (options.temperature or 0.8)
          local byte = string.char(logits:softmax(-1):multinomial():item())
          if byte == options.stop then break end
          text = text .. byte
        end
      end)
    end)
    if training then self:train() end
    if not ok then error(err, 0) end
    return text
  end,
})

---A GPT: token and position embeddings, `layers` blocks (causal attention of `heads` heads, a GELU layer of 4 x
---width), all with pre-layer norm, and a linear head. Initialised as GPT-2, from `seed`. Called with ids [batch,
---length], it gives logits [batch, length, vocab]. model:generate(prompt, { length = 100, temperature = 0.8, seed =
---0, stop = "\n" }) continues a text.
---@param options { layers: integer, heads: integer, width: integer, context: integer, vocab: integer, dropout:
---number, tied: boolean, seed: integer } vocab: 256, dropout: 0, seed: 0; tied: the head is the token embedding
---@return Module
---@mark ephemeral
function nn.gpt(options)
  native.check_options(options, "rille.nn.gpt", { "layers", "heads", "width", "context", "vocab", "dropout", "tied",
    "seed" })
  local o = { vocab = 256, dropout = 0, seed = 0 }
  for name, v in pairs(options or {}) do o[name] = v end
  check_sizes("rille.nn.gpt", { layers = o.layers or false, heads = o.heads or false, width = o.width or false,
    context = o.context or false, vocab = o.vocab })
  if o.width % o.heads ~= 0 then
    invalid(("rille.nn.gpt: width = %d cannot be shared among heads = %d"):format(o.width, o.heads),
      "the width must be a multiple of the heads")
  end
  return nn.with_seed(o.seed, function() return Gpt(o) end)
end

return nn
