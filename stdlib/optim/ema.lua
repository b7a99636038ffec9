-- rille.optim.ema: a moving average of a model's parameters, which often scores better than the parameters themselves.
local native = require "rille.native"
local rille = require "rille"

local names = { "update", "swap", "apply", "state", "load_state" }

---@class Ema an average of a model's parameters
local methods = {}

local Ema = {}
Ema.__index = function(_, key)
  local found = methods[key]
  if found ~= nil then return found end
  rille.error { kind = "invalid", message = "an average has no field or method '" .. tostring(key) .. "'",
    hint = "it has: " .. table.concat(names, ", ") }
end
Ema.__tostring = function(self)
  return ("Ema: average of %d parameters, decay %g"):format(#self._values, self._decay)
end

---Updates the average with the present parameters. Call it after opt:step(); may be used in a compiled function.
---@mark ephemeral
function methods:update() native.average(self._averages, self._values, self._decay,
    self._steps or nil) end

---Exchanges the parameters and their averages; a second call exchanges them back. An average in a wider type than its
---parameter keeps its full precision.
---@mark ephemeral
function methods:swap()
  local exact = rawget(self, "_exact")
  local keeps = not exact and {} or nil
  self._exact = keeps
  rille.no_grad(function()
    for i, value in ipairs(self._values) do
      local average, kept = self._averages[i], value:clone()
      value:copy_(average)
      if keeps and average.dtype ~= value.dtype then keeps[i] = average:clone() end
      average:copy_(exact and exact[i] or kept)
    end
  end)
end

---Calls fn(...) with the averages in the model, and restores the parameters afterwards, also after an error.
---@param fn function the evaluation
---@param ... any its arguments
---@return any result the result of fn
---@mark ephemeral
---@async
---@example
---local loss = ema:apply(rille.train.validation, model, data)
function methods:apply(fn, ...)
  self:swap()
  local result = { pcall(fn, ...) }
  self:swap()
  if not result[1] then error(result[2], 0) end
  return unpack(result, 2)
end

---The data for a checkpoint: a list of { name =, tensor = }.
---@return { name: string, tensor: Tensor }[]
---@mark ephemeral
function methods:state()
  local list = {}
  for i, average in ipairs(self._averages) do list[i] = { name = self._names[i], tensor = average } end
  if self._steps then list[#list + 1] = { name = "steps", tensor = self._steps } end
  return list
end

---Restores it by name, as `model:load_state` does.
---@param state table<string, Tensor>|{ name: string, tensor: Tensor }[] by name, or from state()
---@param options? { strict: boolean } as for `model:load_state`
---@return { missing: string[], unexpected: string[] } names
---@mark ephemeral
---@error state a name is missing or left over, or a tensor has another shape or kind of type
function methods:load_state(state, options) return native.load_state("ema", self:state(), state, options) end

---A moving average of the parameters: each `ema:update()` sets it to decay * average + (1 - decay) * parameter, in f32
---for half types. It starts with the present parameters. Add it to a checkpoint's state beside the model.
---@param parameters { name: string, tensor: Tensor }[]|Module  model:parameters(), or the model
---@param options? { decay: number, warmup: boolean } decay 0.999; warmup: true, at the n-th update the decay is at most
---(1 + n) / (10 + n), so that a young average adapts quickly
---@return Ema
---@mark ephemeral
---@example
---local ema = rille.optim.ema(model, { decay = 0.999 })
local function ema(parameters, options)
  native.check_options(options, "rille.optim.ema", { "decay", "warmup" })
  local o = options or {}
  local self = { _decay = o.decay or 0.999, _averages = {}, _values = {}, _names = {}, _steps = false }
  if type(self._decay) ~= "number" or self._decay < 0 or self._decay >= 1 then
    rille.error { kind = "invalid", message = ("rille.optim.ema: decay = %s; from 0 to below 1 is needed"):format(
      tostring(self._decay)) }
  end
  if type(parameters) == "table" and getmetatable(parameters) and parameters.parameters then
    parameters = parameters:parameters()
  end
  if type(parameters) ~= "table" or parameters[1] == nil then
    rille.error { kind = "invalid", message = "rille.optim.ema: a model, or a list of parameters, is needed",
      hint = "rille.optim.ema(model, { decay = 0.999 })" }
  end
  for i, p in ipairs(parameters) do
    local tensor = type(p) == "table" and p.tensor or p
    self._names[i] = type(p) == "table" and p.name or tostring(i)
    self._values[i] = tensor:detach()
    self._averages[i] = tensor:detach():to(tensor.dtype == "f64" and "f64" or "f32"):clone()
  end
  if o.warmup ~= false then self._steps = rille.device(self._values[1].device):zeros { dtype = "i64" } end
  native.own_memory(self._averages, "moving averages")
  return setmetatable(self, Ema)
end

return ema
