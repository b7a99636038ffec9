-- rille.optim: optimizers and schedules of the learning rate.
local native = require "rille.native"
local rille = require "rille"

local optim = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- A list of tensors, of {name =, tensor =} (what model:parameters() gives), or of groups.
local function groups_of(verb, parameters, options)
  if type(parameters) ~= "table" then
    invalid(verb .. ": expected the parameters first, got " .. tostring(parameters),
      verb .. "(model:parameters(), { lr = 1e-3 })")
  end
  local first = parameters[1]
  if first == nil then invalid(verb .. ": the list of parameters is empty", "pass model:parameters()") end
  local groups = {}
  if type(first) == "table" and rawget(first, "parameters") then
    for i, group in ipairs(parameters) do
      native.check_options(group, verb .. "'s group " .. i, { "parameters", "lr", "weight_decay" })
      groups[i] = { parameters = groups_of(verb, group.parameters, {})[1].parameters, lr = group.lr or options.lr,
        weight_decay = group.weight_decay or options.weight_decay }
    end
    return groups
  end
  local list = {}
  for i, p in ipairs(parameters) do
    if type(p) == "table" then list[i] = p else list[i] = { name = tostring(i), tensor = p } end
  end
  return { { parameters = list, lr = options.lr, weight_decay = options.weight_decay } }
end

---AdamW with decoupled weight decay. Step count and learning rate live on the device, so that a compiled step is
---never stale.
---@param parameters table  model:parameters(), a list of tensors, or groups { parameters =, lr =, weight_decay = }
---@param options? { lr: number, betas: number[], eps: number, weight_decay: number } 1e-3, {0.9, 0.999}, 1e-8, 0.01
---@return Optimizer
---@mark ephemeral
function optim.adamw(parameters, options)
  native.check_options(options, "rille.optim.adamw", { "lr", "betas", "eps", "weight_decay" })
  options = options or {}
  local betas = options.betas or { 0.9, 0.999 }
  local groups = groups_of("rille.optim.adamw", parameters,
    { lr = options.lr or 1e-3, weight_decay = options.weight_decay or 0.01 })
  return native.optimizer("adamw", groups, { beta1 = betas[1], beta2 = betas[2], eps = options.eps or 1e-8 })
end

---Stochastic gradient descent.
---@param parameters table  as for adamw
---@param options? { lr: number, momentum: number, nesterov: boolean, weight_decay: number } 1e-2, 0, false, 0
---@return Optimizer
---@mark ephemeral
function optim.sgd(parameters, options)
  native.check_options(options, "rille.optim.sgd", { "lr", "momentum", "nesterov", "weight_decay" })
  options = options or {}
  local groups = groups_of("rille.optim.sgd", parameters,
    { lr = options.lr or 1e-2, weight_decay = options.weight_decay or 0 })
  return native.optimizer("sgd", groups, { momentum = options.momentum or 0, nesterov = options.nesterov or false })
end

---A schedule for rille.train: the rate grows from 0 to `lr` over `warmup` steps and falls to `floor` along a cosine.
---@param options { lr: number, steps: integer, warmup: integer, floor: number } warmup: 5 % of the steps; floor: lr
---/ 10
---@return fun(step: integer): number
---@mark deterministic
function optim.cosine(options)
  native.check_options(options, "rille.optim.cosine", { "lr", "steps", "warmup", "floor" })
  if not (options and options.lr and options.steps) then
    invalid("rille.optim.cosine: lr and steps are needed", "rille.optim.cosine { lr = 1e-3, steps = 300 }")
  end
  local lr, steps = options.lr, options.steps
  local warmup = options.warmup or math.floor(steps * 0.05)
  local floor = options.floor or lr / 10
  return function(step)
    if step <= warmup then return lr * step / warmup end
    local done = math.min(1, (step - warmup) / math.max(1, steps - warmup))
    return floor + (lr - floor) * 0.5 * (1 + math.cos(math.pi * done))
  end
end

---Scales the gradients of the parameters so that their joint 2-norm is at most `limit`; gives the norm before.
---@param parameters table  model:parameters(), or a list of tensors
---@param limit number the largest norm that is left alone
---@return Tensor
---@mark ephemeral
function optim.clip_grad_norm(parameters, limit) return native.clip_grad_norm(parameters, limit) end

return optim
