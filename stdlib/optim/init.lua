-- rille.optim: optimizers, parameter groups, gradient clipping and schedules.
local native = require "rille.native"
local rille = require "rille"

local optim = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local function copy(from, into)
  local out = into or {}
  for key, v in pairs(from) do if out[key] == nil then out[key] = v end end
  return out
end

-- Reads a list of tensors, or of { name =, tensor = } as from model:parameters(); returns tensors with names.
local function named(verb, parameters)
  if type(parameters) ~= "table" then
    invalid(verb .. ": expected the parameters first, got " .. tostring(parameters),
      verb .. "(model:parameters(), { lr = 1e-3 })")
  end
  if getmetatable(parameters) and parameters.parameters then parameters = parameters:parameters() end
  if parameters[1] == nil then
    invalid(verb .. ": the list of parameters is empty", "pass model:parameters()")
  end
  local list = {}
  for i, p in ipairs(parameters) do
    if type(p) == "table" then list[i] = p else list[i] = { name = tostring(i), tensor = p } end
  end
  return list
end

-- Returns the default options of an optimizer's rule: lr, weight_decay and the rule's special settings.
local function defaults_of(rule)
  local defaults = native.optimizer_defaults(rule)
  if defaults.beta1 then
    defaults.betas, defaults.beta1, defaults.beta2 = { defaults.beta1, defaults.beta2 }, nil, nil
  end
  return defaults
end

-- Merges the options of a rule with the defaults and converts them for the C functions, which take beta1 and beta2
-- instead of betas = { beta1, beta2 }.
local function settings(rule, verb, options, defaults, more)
  local known = {}
  for name in pairs(defaults) do known[#known + 1] = name end
  for _, name in ipairs(more or {}) do known[#known + 1] = name end
  native.check_options(options, verb, known)
  local o = copy(defaults, copy(options or {}))
  o.rule = rule
  if o.betas then o.beta1, o.beta2, o.betas = o.betas[1], o.betas[2], nil end
  return o
end

-- Reads the parameter groups, each { parameters =, and options for this group }; or a single list, which becomes one
-- group.
local function groups_of(verb, parameters, o, check)
  local first = type(parameters) == "table" and parameters[1]
  if type(first) ~= "table" or not rawget(first, "parameters") or getmetatable(first) then
    return { copy(o, { parameters = named(verb, parameters) }) }
  end
  local groups = {}
  for i, group in ipairs(parameters) do
    local mine = copy(group)
    mine.parameters = nil
    mine = check(mine, verb .. "'s group " .. i)
    for key in pairs(mine) do if group[key] == nil and key ~= "beta1" and key ~= "beta2" then mine[key] = nil end end
    if not group.betas then mine.beta1, mine.beta2 = nil, nil end
    groups[i] = copy(o, copy(mine, { parameters = named(verb, group.parameters) }))
  end
  return groups
end

-- Makes an optimizer. The option `loss_scale` applies to the whole optimizer, not to a group.
local function make(rule, verb, parameters, options)
  local defaults = defaults_of(rule)
  if type(options) == "number" then
    invalid(("%s: expected a table of options, got %s"):format(verb, options),
      ("%s(model, { lr = %s })"):format(verb, options))
  end
  local function check(given, whose) return settings(rule, whose, given, defaults) end
  local scale = options and options.loss_scale or nil
  local o = settings(rule, verb, options, defaults, { "loss_scale" })
  o.loss_scale = nil
  if scale == true then scale = {} end
  native.check_options(scale, verb .. "'s loss_scale", { "initial", "growth", "backoff", "interval" })
  return native.optimizer(rule, groups_of(verb, parameters, o, check), scale)
end

---@class rille.optim.AdamOptions
---@field lr? number 1e-3
---@field betas? number[] { 0.9, 0.999 }
---@field eps? number 1e-8
---@field weight_decay? number adamw: 0.01; adam: 0
---@field loss_scale? boolean|rille.optim.LossScale for f16: see `opt:scaled`

---@class rille.optim.LossScale
---@field initial? number its initial value, 65536
---@field growth? number it grows by this factor, 2,
---@field interval? integer after so many good steps, 2000,
---@field backoff? number and shrinks by this one when a gradient is not finite, 0.5

---AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019). Step count and learning rate are on the device,
---so that a compiled step is never stale.
---
---Parameters of f16 and bf16 get a master copy in f32, which is updated; it is made here, so load weights
---before. `rille.optim.groups` makes groups with and without decay.
---@param parameters table  model:parameters(), a list of tensors, or groups { parameters =, lr =, weight_decay =, .. }
---@param options? rille.optim.AdamOptions what differs from the defaults
---@return Optimizer
---@mark ephemeral
---@error invalid a parameter is not a leaf that requires grad, occurs twice, or is f64 among others; lr or weight_decay
---is negative
function optim.adamw(parameters, options)
  return make("adamw", "rille.optim.adamw", parameters, options)
end

---Adam (Kingma and Ba 2015). Weight decay is added to the gradient; `adamw` decays the parameters instead.
---@param parameters table  as for adamw
---@param options? rille.optim.AdamOptions what differs from the defaults
---@return Optimizer
---@mark ephemeral
function optim.adam(parameters, options)
  return make("adam", "rille.optim.adam", parameters, options)
end

---Stochastic gradient descent.
---@param parameters table  as for adamw
---@param options? { lr: number, momentum: number, nesterov: boolean, weight_decay: number, loss_scale: table } 1e-2,
---0, false, 0; loss_scale as for adamw
---@return Optimizer
---@mark ephemeral
function optim.sgd(parameters, options)
  return make("sgd", "rille.optim.sgd", parameters, options)
end

---Lion (Chen et al. 2023): steps of uniform size, in the direction of the sign of a momentum. Half of AdamW's state;
---use about a tenth of its rate and ten times its decay.
---@param parameters table  as for adamw
---@param options? { lr: number, betas: number[], weight_decay: number, loss_scale: table } 1e-4, { 0.9, 0.99 }, 0;
---loss_scale as for adamw
---@return Optimizer
---@mark ephemeral
function optim.lion(parameters, options)
  return make("lion", "rille.optim.lion", parameters, options)
end

-- Names of matrices that Muon is not meant for: embedding tables and output heads.
local apart = { "^tokens%.", "^positions", "^places%.", "^segments%.", "^head%.", "^fc%." }

local function hidden(name, tensor)
  if tensor:dim() < 2 then return false end
  for _, pattern in ipairs(apart) do if name:find(pattern) then return false end end
  return true
end

---@class rille.optim.MuonOptions
---@field lr? number of the matrices, 0.02
---@field momentum? number 0.95
---@field nesterov? boolean true
---@field weight_decay? number of the matrices, decoupled, 0.1
---@field iterations? integer Newton-Schulz steps, 5
---@field precision? string type of their products, "bf16" (the published one) or "f32"
---@field match_rms? boolean scales updates by 0.2 sqrt(max(rows, columns)), for rates like AdamW's (Liu et al. 2025);
---otherwise by sqrt(max(1, rows / columns))
---@field matrices? fun(name: string, tensor: Tensor): boolean which parameters it updates; by default those with two or
---more dimensions that are not an embedding, a head or (in image networks) the last layer, by the names of rille.nn
---@field adamw? rille.optim.AdamOptions of all others: lr 3e-4, weight_decay 0
---@field loss_scale? boolean|rille.optim.LossScale as for adamw

---Muon (Jordan et al. 2024) for hidden matrices: orthogonalized momentum; AdamW for all other parameters.
---Weights of convolutions are treated as matrices [outputs, the rest].
---@param parameters { name: string, tensor: Tensor }[] model:parameters(): their names decide
---@param options? rille.optim.MuonOptions what differs from the defaults
---@return Optimizer
---@mark ephemeral
---@example
---local opt = rille.optim.muon(model:parameters(), { lr = 0.02, adamw = { lr = 3e-4 } })
function optim.muon(parameters, options)
  local verb = "rille.optim.muon"
  local o = settings("muon", verb, options, defaults_of("muon"), { "matrices", "adamw", "loss_scale" })
  local others = defaults_of("adamw")
  others.lr, others.weight_decay = 3e-4, 0
  local rest = settings("adamw", verb .. "'s adamw", o.adamw or {}, others)
  local wanted, scale = o.matrices or hidden, o.loss_scale or nil
  o.matrices, o.adamw, o.loss_scale = nil, nil, nil
  o.parameters, rest.parameters = {}, {}
  for _, p in ipairs(named(verb, parameters)) do
    local into = wanted(p.name, p.tensor) and o.parameters or rest.parameters
    into[#into + 1] = p
  end
  local groups = {}
  for _, group in ipairs { o, rest } do if #group.parameters > 0 then groups[#groups + 1] = group end end
  if scale == true then scale = {} end
  native.check_options(scale, verb .. "'s loss_scale", { "initial", "growth", "backoff", "interval" })
  return native.optimizer("muon", groups, scale)
end

---Two groups for an optimizer: matrices and convolutions with weight decay; biases, norms and other vectors without.
---@param parameters { name: string, tensor: Tensor }[]|Module  model:parameters(), or the model
---@param options? { weight_decay: number, lr: number, decays: fun(name: string, tensor: Tensor): boolean } weight_decay
---0.1; lr: the optimizer's; decays: which do, by default those with two or more dimensions
---@return table groups
---@mark ephemeral
---@example
---local opt = rille.optim.adamw(rille.optim.groups(model, { weight_decay = 0.1 }), { lr = 3e-4 })
function optim.groups(parameters, options)
  native.check_options(options, "rille.optim.groups", { "weight_decay", "lr", "decays" })
  local o = options or {}
  local decays = o.decays or function(_, tensor) return tensor:dim() >= 2 end
  local with, without = {}, {}
  for _, p in ipairs(named("rille.optim.groups", parameters)) do
    local into = decays(p.name, p.tensor) and with or without
    into[#into + 1] = p
  end
  local groups = {}
  if #with > 0 then groups[1] = { parameters = with, lr = o.lr, weight_decay = o.weight_decay or 0.1 } end
  if #without > 0 then groups[#groups + 1] = { parameters = without, lr = o.lr, weight_decay = 0 } end
  return groups
end

-- Returns the list of parameters: `parameters` itself or, for a model, the model's parameters.
local function list_of(parameters)
  if type(parameters) ~= "table" or not getmetatable(parameters) or not parameters.parameters then return parameters end
  return parameters:parameters()
end

---Scales the gradients of the parameters so that their joint 2-norm is at most `limit`; returns the norm before
---scaling.
---@param parameters table  model:parameters(), the model, or a list of tensors
---@param limit number the largest norm without scaling
---@return Tensor
---@mark ephemeral
function optim.clip_grad_norm(parameters, limit) return native.clip_grad_norm(list_of(parameters), limit) end

---Clamps each element of the parameters' gradients to [-limit, limit].
---@param parameters table  model:parameters(), the model, or a list of tensors
---@param limit number the largest absolute value
---@mark ephemeral
function optim.clip_grad_value(parameters, limit) native.clip_grad_value(list_of(parameters), limit) end

for name, make_part in pairs(require "rille.optim.schedules") do optim[name] = make_part end
optim.ema = require "rille.optim.ema"

return optim
