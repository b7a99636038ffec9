-- rille.nn: layers and models. A module is a plain table: its tensors that require grad are parameters, its modules and
-- lists of modules are parts. It is called like a function. Names of parameters are paths: "blocks.1.mlp.fc.weight".
local native = require "rille.native"
local rille = require "rille"

local tools = require "rille.nn.tools"

local nn = {}
local invalid, normal, check_sizes = tools.invalid, tools.normal, tools.check_sizes

-- Modules -------------------------------------------------------------------------------------------------------------

local methods = {}
local marks = setmetatable({}, { __mode = "k" })   -- the metatables of all module classes
local off = setmetatable({}, { __mode = "v" })     -- models in eval mode, by the model's number
local numbers = setmetatable({}, { __mode = "k" }) -- maps every model that was ever in eval mode to its number
local last_number = 0

local function is_module(v)
  local mt = type(v) == "table" and getmetatable(v)
  return type(mt) == "table" and marks[mt] == true
end

local function given_back(...) return ... end

-- Appends a module's tensors to `list`, ordered by name in tables and by position in lists: { name, tensor, owner,
-- key }. Does not call a callback per tensor: LuaJIT's compiled loop would keep the first callbacks alive, and
-- everything that they refer to, such as the tensors of a file.
local function tensors_of(part, path, list)
  for key, v in pairs(part) do
    local name = path == "" and tostring(key) or path .. "." .. tostring(key)
    if native.kind(v) then
      list[#list + 1] = { name = name, tensor = v, owner = part, key = key }
    elseif is_module(v) or (type(v) == "table" and getmetatable(v) == nil) then
      tensors_of(v, name, list)
    end
  end
  return list
end

-- Sorts a module's tensors into two lists, without names; faster for modules that hold large tables of other values.
local function sort_tensors(part, parameters, others)
  for _, v in pairs(part) do
    if native.kind(v) then
      local list = v.requires_grad and parameters or others
      list[#list + 1] = v
    elseif is_module(v) or (type(v) == "table" and getmetatable(v) == nil) then
      sort_tensors(v, parameters, others)
    end
  end
end

-- Sets the name that memory reports show as the owner of the tensors: the outermost module wins, because it is
-- complete last.
local function name_memory(module, name)
  local parameters, others = {}, {}
  sort_tensors(module, parameters, others)
  native.own_memory(parameters, "parameters of " .. name)
  native.own_memory(others, "other tensors of " .. name)
end

-- Replaces each tensor by change(tensor). A tensor that several modules share stays shared.
local function for_each_once(part, change)
  local changed, any = {}, false
  for _, at in ipairs(tensors_of(part, "", {})) do
    changed[at.tensor] = changed[at.tensor] or change(at.tensor)
    any = any or changed[at.tensor] ~= at.tensor
    at.owner[at.key] = changed[at.tensor]
  end
  return any
end

---The parameters: a list of { name =, tensor = }, ordered by name. A shared parameter occurs once, under its first
---name.
---@return { name: string, tensor: Tensor }[]
---@mark ephemeral
function methods:parameters()
  local list, seen = {}, {}
  for _, at in ipairs(tensors_of(self, "", {})) do
    if at.tensor.requires_grad and not seen[at.tensor] then
      seen[at.tensor] = true
      list[#list + 1] = { name = at.name, tensor = at.tensor }
    end
  end
  return list
end

---The tensors of a checkpoint: the parameters, and tensors that are not trained, such as running means.
---@return { name: string, tensor: Tensor }[]
---@mark ephemeral
function methods:state()
  local list = {}
  for _, at in ipairs(tensors_of(self, "", {})) do list[#list + 1] = { name = at.name, tensor = at.tensor } end
  return list
end

---The number of trainable values.
---@return integer
---@mark ephemeral
function methods:count()
  local n = 0
  for _, p in ipairs(self:parameters()) do n = n + p.tensor:numel() end
  return n
end

-- The key of compiled functions contains the set of models in eval mode, and `moves`: how often models got new
-- tensors.
local moves = 0
local function publish_mode()
  local list = {}
  for number in pairs(off) do list[#list + 1] = number end
  table.sort(list)
  native.set_mode(table.concat(list, ",") .. (moves > 0 and ";" .. moves or ""))
end

-- Recordings of compiled functions refer to the old tensors, so publish_mode makes new recordings necessary.
local function replace_tensors(part, change)
  if for_each_once(part, change) then moves = moves + 1; publish_mode() end
end

---Moves the model to a device, or its parameters to another floating type; returns the module. Tensors that are not
---trained, such as running means, keep their type. Make optimizers after it.
---@param target Device|string from rille.device(), or its name, or "f32", "bf16", "f16", "f64"
---@return Module
---@mark ephemeral
function methods:to(target)
  if type(target) == "string" and target ~= "cpu" and not target:find "^cuda" then
    if target ~= "f32" and target ~= "bf16" and target ~= "f16" and target ~= "f64" then
      invalid("model:to: '" .. target .. "' is not a floating type", 'model:to("bf16")')
    end
    replace_tensors(self, function(tensor)
      if not tensor.requires_grad then   -- running means stay f32 when the parameters become f16 or bf16
        local kind = tensor.dtype
        return (kind == "f32" or kind == "f64") and tensor:to(target == "f64" and "f64" or "f32") or tensor
      end
      local cast = tensor:detach():to(target):requires_grad_()
      native.own_memory_like(cast, tensor)
      return cast
    end)
    return self
  end
  if type(target) ~= "userdata" and type(target) ~= "string" then
    invalid("model:to: expected a device or a type, got " .. tostring(target), "model:to(rille.device())")
  end
  replace_tensors(self, function(tensor) return tensor:to(target) end)
  return self
end

local function set_mode(part, on)
  rawset(part, "training", on)
  local number = numbers[part]
  if not number and not on then
    last_number = last_number + 1
    number = last_number
    numbers[part] = number
  end
  if not number or (off[number] == nil) == on then return false end
  off[number] = not on and part or nil
  return true
end

-- Calls change with each module in `part`, including `part` if it is a module; returns whether any call returned
-- true.
local function each_module(part, change)
  local changed = is_module(part) and change(part)
  for _, v in pairs(part) do
    if type(v) == "table" and (is_module(v) or getmetatable(v) == nil) then
      changed = each_module(v, change) or changed
    end
  end
  return changed
end

local function set_training(part, on)
  if each_module(part, function(module) return set_mode(module, on) end) then publish_mode() end
end

---Sets training mode (dropout is active), the initial mode of modules.
---@return Module
---@mark ephemeral
function methods:train()
  set_training(self, true)
  return self
end

---Sets evaluation mode (no dropout).
---@return Module
---@mark ephemeral
function methods:eval()
  set_training(self, false)
  return self
end

-- Internal: switches the model to evaluation mode; returns a function that restores each module's former mode.
function methods:_evaluating()
  local before = {}
  each_module(self, function(module) before[module] = module.training end)
  self:eval()
  return function()
    if each_module(self, function(module) return set_mode(module, before[module]) end) then publish_mode() end
  end
end

---Copies the tensors of a state. By default every name must be there with its shape and kind of type, and no other
---name; all is checked first, so that a state that does not fit changes nothing. From a file, each tensor is in memory
---only while it is copied, so a model that just fits can be loaded. The tensors may be on another device.
---@param state table<string, Tensor>|{ name: string, tensor: Tensor }[]|string by name, or from state(); or the
---path of a safetensors file, of an index of such files, or of a folder with either, as for `rille.data.load_tensors`
---@param options? { strict: boolean } true; false skips missing and unknown names
---@return { missing: string[], unexpected: string[] } names
---@mark ephemeral
---@error state a name is missing or unknown, or a tensor has another shape or kind of type; integrity, io: as for
---`rille.data.load_tensors`
---@example
---model:load_state("model.safetensors")
function methods:load_state(state, options)
  if type(state) == "string" then state = native.tensors_open(state) end
  return native.load_state("model", tensors_of(self, "", {}), state, options)
end

---Makes a class of modules. `init(self, options)` fills the table; `forward(self, ...)` is the call. In memory reports
---(`dev:memory()`, errors) its parameters are named "parameters of Mlp at train.lua:12".
---    local Mlp = nn.class("Mlp", { init = function(self, o) self.fc = nn.linear(o.width, 4 * o.width) end,
---                                  forward = function(self, x) return self.fc(x):gelu() end })
---    local mlp = Mlp { width = 64 }
---@param name string its name in errors and in print
---@param spec table  init, forward, and any further methods
---@return fun(options): Module
---@mark ephemeral
function nn.class(name, spec)
  if type(spec) ~= "table" or type(spec.forward) ~= "function" then
    invalid("rille.nn.class '" .. tostring(name) .. "': a function `forward` is needed")
  end
  -- `__module`: errors name the innermost module whose call is not at its end, which a tail call would be.
  local mt = { __name = name, __module = true }
  mt.__call = function(self, ...) return given_back(spec.forward(self, ...)) end
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
    name_memory(self, name)
    return self
  end
end

---Calls fn with the device's random numbers seeded by `seed`, and restores them afterwards.
---@param seed integer? the seed; nil leaves the random numbers unchanged
---@param fn function called without arguments
---@param device? Device the device of the random numbers; the default device
---@return any result the result of fn
---@mark ephemeral
function nn.with_seed(seed, fn, device)
  if seed == nil then return fn() end
  device = device or rille.device()
  local before = device:random_state()
  device:seed(seed)
  local result = { pcall(fn) }
  device:set_random_state(before)
  if not result[1] then error(result[2], 0) end
  return unpack(result, 2)
end

-- Raises unless the input x of a layer is a tensor; returns x.
local function given(x, layer)
  if type(x) == "userdata" then return x end
  invalid(("%s: expected a tensor, got %s"):format(tostring(layer), x == nil and "nil" or tostring(x)),
    type(x) == "table" and "dev:tensor(list) makes a tensor of a list" or "layer(x), with a tensor x")
end

-- Layers --------------------------------------------------------------------------------------------------------------

local Linear = nn.class("Linear", {
  init = function(self, inputs, outputs, options)
    local deviation = options.deviation or 1 / math.sqrt(inputs)
    self.weight = normal({ outputs, inputs }, deviation)
    if options.bias ~= false then self.bias = rille.device():zeros { outputs, requires_grad = true } end
  end,
  forward = function(self, x) return given(x, self):linear(self.weight, rawget(self, "bias")) end,
})

---x -> x W' + b. weight [outputs, inputs]: normal with deviation 1/sqrt(inputs); bias: zero.
---@param inputs integer size of the input's last dimension
---@param outputs integer size of the output's last dimension
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
  forward = function(self, ids) return given(ids, self):embedding(self.weight) end,
})

---ids (integers from 0) -> rows of weight [count, width]: normal with deviation 0.02.
---@param count integer the number of ids
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
  forward = function(self, x) return given(x, self):layer_norm(self.weight, self.bias, self.eps) end,
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
  forward = function(self, x) return given(x, self):dropout(self.p, self.training) end,
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

-- Convolution and norms over channels ------------------------------------------------------------------------------

local function conv_class(name, verb, dims)
  return nn.class(name, {
    init = function(self, inputs, outputs, size, options)
      local shape, fan = { outputs, inputs / options.groups }, inputs / options.groups
      for d = 1, dims do
        shape[2 + d] = type(size) == "table" and size[d] or size
        fan = fan * shape[2 + d]
      end
      self.weight = normal(shape, options.deviation or math.sqrt(2 / fan))
      if options.bias then self.bias = rille.device():zeros { outputs, requires_grad = true } end
      self.how = { stride = options.stride, padding = options.padding, dilation = options.dilation,
        groups = options.groups }
    end,
    forward = function(self, x) return given(x, self)[verb](x, self.weight, rawget(self, "bias"), self.how) end,
  })
end

local Conv1d, Conv2d = conv_class("Conv1d", "conv1d", 1), conv_class("Conv2d", "conv2d", 2)

local function of_axis(pair, d) return type(pair) == "table" and pair[d] or pair end

local ConvTranspose2d = nn.class("ConvTranspose2d", {
  init = function(self, inputs, outputs, size, options)
    local h, w = of_axis(size, 1), of_axis(size, 2)
    -- The number of input values that contribute to one result of a transposed convolution: the window, divided by
    -- the stride.
    local fan = inputs / options.groups * math.max(1, h / of_axis(options.stride, 1)) *
      math.max(1, w / of_axis(options.stride, 2))
    self.weight = normal({ inputs, outputs / options.groups, h, w }, options.deviation or math.sqrt(2 / fan))
    if options.bias then self.bias = rille.device():zeros { outputs, requires_grad = true } end
    self.how = { stride = options.stride, padding = options.padding, output_padding = options.output_padding,
      dilation = options.dilation, groups = options.groups }
  end,
  forward = function(self, x)
    return given(x, self):conv_transpose2d(self.weight, rawget(self, "bias"), self.how)
  end,
})

local function conv(make, verb, inputs, outputs, size, options, more)
  check_sizes(verb, { inputs = inputs or false, outputs = outputs or false,
    size = type(size) == "table" and 1 or size or false })
  native.check_options(options, verb, { "stride", "padding", "dilation", "groups", "bias", "deviation", "seed", more })
  local o = { stride = 1, padding = 0, dilation = 1, groups = 1, bias = true }
  for key, v in pairs(options or {}) do o[key] = v end
  if inputs % o.groups ~= 0 or (more and outputs % o.groups ~= 0) then
    invalid(("%s: %d channels cannot be shared among %d groups"):format(verb,
      inputs % o.groups ~= 0 and inputs or outputs, o.groups))
  end
  return nn.with_seed(o.seed, function() return make(inputs, outputs, size, o) end)
end

---Convolution of [n, inputs, length]. weight [outputs, inputs/groups, size]: normal, scaled for a following ReLU (He
---2015).
---@param inputs integer input channels
---@param outputs integer output channels
---@param size integer of the window
---@param options? table stride 1, padding 0, dilation 1, groups 1, bias true, deviation, seed
---@return Module
---@mark ephemeral
function nn.conv1d(inputs, outputs, size, options)
  return conv(Conv1d, "rille.nn.conv1d", inputs, outputs, size, options)
end

---Convolution of [n, inputs, height, width]. weight [outputs, inputs/groups, h, w]: normal, for a following ReLU.
---@param inputs integer input channels
---@param outputs integer output channels
---@param size integer|integer[] of the window: one number, or { height, width }
---@param options? table stride 1, padding 0, dilation 1 (numbers or pairs), groups 1, bias true, deviation, seed
---@return Module
---@mark ephemeral
function nn.conv2d(inputs, outputs, size, options)
  return conv(Conv2d, "rille.nn.conv2d", inputs, outputs, size, options)
end

---Transposed convolution of [n, inputs, height, width]: stride 2 doubles the image. weight [inputs, outputs/groups, h,
---w]: normal, scaled for a following ReLU.
---@param inputs integer input channels
---@param outputs integer output channels
---@param size integer|integer[] of the window: one number, or { height, width }
---@param options? table stride 1, padding 0, output_padding 0, dilation 1 (numbers or pairs), groups 1, bias true,
---deviation, seed
---@return Module
---@mark ephemeral
---@example
---local nn = require "rille.nn"
---local double = nn.conv_transpose2d(8, 4, 2, { stride = 2 })
---print(table.concat(double(rille.device():zeros { 1, 8, 5, 7 }):shape(), " "))   --> 1 4 10 14
function nn.conv_transpose2d(inputs, outputs, size, options)
  return conv(ConvTranspose2d, "rille.nn.conv_transpose2d", inputs, outputs, size, options, "output_padding")
end

local BatchNorm = nn.class("BatchNorm", {
  init = function(self, channels, options)
    local dev = rille.device()
    self.weight = dev:full { channels, value = options.scale or 1, requires_grad = true }
    self.bias = dev:zeros { channels, requires_grad = true }
    self.running_mean, self.running_var = dev:zeros { channels }, dev:ones { channels }
    self.how = { momentum = options.momentum, eps = options.eps }
  end,
  forward = function(self, x)
    return given(x, self):batch_norm(self.weight, self.bias, { running_mean = self.running_mean,
      running_var = self.running_var, training = self.training, momentum = self.how.momentum, eps = self.how.eps })
  end,
})

---Normalises the channels of [n, c, ..]: in training by the batch, in evaluation by the running mean and variance,
---which checkpoints store.
---@param channels integer how many
---@param options? { momentum: number, eps: number, scale: number } 0.1, 1e-5; scale: the initial weight, 1
---@return Module
---@mark ephemeral
function nn.batch_norm(channels, options)
  check_sizes("rille.nn.batch_norm", { channels = channels or false })
  native.check_options(options, "rille.nn.batch_norm", { "momentum", "eps", "scale" })
  return BatchNorm(channels, options or {})
end

local GroupNorm = nn.class("GroupNorm", {
  init = function(self, groups, channels, options)
    self.groups, self.eps = groups, options.eps or 1e-5
    self.weight = rille.device():ones { channels, requires_grad = true }
    self.bias = rille.device():zeros { channels, requires_grad = true }
  end,
  forward = function(self, x) return given(x, self):group_norm(self.groups, self.weight, self.bias, self.eps) end,
})

---Normalises groups of channels of [n, c, ..].
---@param groups integer how many groups
---@param channels integer how many channels, a multiple of groups
---@param options? { eps: number } 1e-5
---@return Module
---@mark ephemeral
function nn.group_norm(groups, channels, options)
  check_sizes("rille.nn.group_norm", { groups = groups or false, channels = channels or false })
  tools.check_shared("rille.nn.group_norm", "channels", channels, "groups", groups)
  native.check_options(options, "rille.nn.group_norm", { "eps" })
  return GroupNorm(groups, channels, options or {})
end

local RmsNorm = nn.class("RmsNorm", {
  init = function(self, width, options)
    self.eps = options.eps or 1e-6
    self.weight = rille.device():ones { width, requires_grad = true }
  end,
  forward = function(self, x) return given(x, self):rms_norm(self.weight, self.eps) end,
})

---Divides by the root of the mean square of the last dimension, then scales.
---@param width integer size of the last dimension
---@param options? { eps: number } 1e-6
---@return Module
---@mark ephemeral
function nn.rms_norm(width, options)
  check_sizes("rille.nn.rms_norm", { width = width or false })
  native.check_options(options, "rille.nn.rms_norm", { "eps" })
  return RmsNorm(width, options or {})
end

local in_order = {
  init = function(self, parts) for i, part in ipairs(parts) do rawset(self, i, part) end end,
  forward = function(self, x)
    for i = 1, #self do x = self[i](x) end
    return x
  end,
}
local Sequential, Mlp = nn.class("Sequential", in_order), nn.class("Mlp", in_order)

---Runs modules and functions one after another.
---@param parts table a list: `nn.sequential { nn.linear(8, 16), function(x) return x:relu() end, nn.linear(16, 2) }`
---@return Module
---@mark ephemeral
function nn.sequential(parts)
  if type(parts) ~= "table" or #parts == 0 then
    invalid("rille.nn.sequential: expected a list of modules, got " .. tostring(parts),
      "one table of them: rille.nn.sequential { a, b }")
  end
  for i, part in ipairs(parts) do
    if type(part) ~= "function" and not is_module(part) then
      invalid(("rille.nn.sequential: part %d is %s, neither a module nor a function"):format(i, tostring(part)))
    end
  end
  return Sequential(parts)
end

---A classifier of vectors: linear layers with ReLU between them.
---@param sizes integer[] of the input, the hidden layers and the output: { 784, 128, 10 }
---@param options? { seed: integer } of the weights
---@return Module
---@mark ephemeral
function nn.mlp(sizes, options)
  if type(sizes) ~= "table" or #sizes < 2 then
    invalid("rille.nn.mlp: expected a list of at least two sizes", "rille.nn.mlp { 784, 128, 10 }")
  end
  for i, size in ipairs(sizes) do check_sizes("rille.nn.mlp", { ["size " .. i] = size or false }) end
  native.check_options(options, "rille.nn.mlp", { "seed" })
  return nn.with_seed(options and options.seed, function()
    local parts = {}
    for i = 2, #sizes do
      if i > 2 then parts[#parts + 1] = function(x) return x:relu() end end
      parts[#parts + 1] = nn.linear(sizes[i - 1], sizes[i], { deviation = math.sqrt(2 / sizes[i - 1]) })
    end
    return Mlp(parts)
  end)
end

-- Attention and models are in files of their own ----------------------------------------------------------------------

for _, name in ipairs { "attention", "gpt", "gpt2", "llama", "bert", "resnet" } do
  nn[name] = function(...) return require("rille.nn." .. name)(...) end
end

return nn
