-- rille.gradcheck: compares the gradients of a function with differences of its values.
local native = require "rille.native"
local rille = require "rille"

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- How far values are moved, and how far the two may lie apart, by type.
local defaults = { f64 = { step = 1e-5, tolerance = 1e-4 }, f32 = { step = 1e-2, tolerance = 2e-2 } }

local function number_option(options, name, default)
  local value = options[name]
  if value == nil then return default end
  if type(value) ~= "number" or not (value > 0) then
    invalid(("rille.gradcheck: %s = %s; a number above 0 is needed"):format(name, tostring(value)))
  end
  return value
end

-- Numbers from 0.5 to 1.5, the same at each call, that follow no pattern of the function's.
local function weights_like(result)
  local list = {}
  for i = 1, result:numel() do list[i] = 0.5 + i * 0.6180339887498949 % 1 end
  return rille.device(result.device):tensor(list, { dtype = result.dtype }):reshape(result:shape())
end

-- The sum of all results, each weighted, so that no error of one is cancelled by another's.
local function weighted_sum(weights, ...)
  local total
  for i = 1, select("#", ...) do
    local result = select(i, ...)
    if native.kind(result) == nil then
      invalid(("rille.gradcheck: result %d is %s; a tensor is needed"):format(i, tostring(result)))
    end
    weights[i] = weights[i] or weights_like(result)
    local sum = (result * weights[i]):sum()
    total = total and total + sum or sum
  end
  if not total then invalid("rille.gradcheck: the function gave nothing; a tensor is needed") end
  return total
end

local function place_text(shape, flat)
  local at, rest = {}, flat - 1
  for i = #shape, 1, -1 do
    at[i] = rest % shape[i] + 1
    rest = math.floor(rest / shape[i])
  end
  return "[" .. table.concat(at, ", ") .. "]"
end

---Checks the gradients of a function against differences of its values: (f(x + h) - f(x - h)) / 2h, for each value of
---each float tensor among the arguments. For `rille.custom_grad` and kernels with a gradient of their own. Raises where
---the two differ, and names the argument and the place.
---
---Use small tensors: the function is called twice for each of their values. f64 is exact enough for the default
---tolerance of 1e-4; with f32 it is 2e-2, and a function that is not smooth there (relu near 0) may fail by chance.
---@param fn fun(...: any): Tensor the function; of tensors with any shapes
---@param inputs any[] its arguments
---@param options { step: number?, tolerance: number? }? h, and the greatest difference, relative to the gradient where
---that is above 1
---@return boolean true
---@mark ephemeral
---@async
---@error state a gradient is wrong; code `gradient_differs`
---@error invalid no argument is a float tensor
---@example
---local dev = rille.device()
---local x, y = dev:rand { 3, dtype = "f64" }, dev:rand { 3, dtype = "f64" }
---rille.gradcheck(function(a, b) return a * b:exp() end, { x, y })
local function gradcheck(fn, inputs, options)
  options = options or {}
  native.check_options(options, "rille.gradcheck", { "step", "tolerance" })
  if type(inputs) ~= "table" or getmetatable(inputs) ~= nil then
    invalid("rille.gradcheck: expected a list of arguments, got " .. tostring(inputs),
      "rille.gradcheck(fn, { x, y })")
  end
  local arguments, checked, weights = {}, {}, {}
  local count = 0
  for i in pairs(inputs) do count = math.max(count, i) end
  for i = 1, count do
    local value = inputs[i]
    if native.kind(value) ~= nil and defaults[value.dtype] then
      value = value:detach():clone():requires_grad_()
      checked[#checked + 1] = i
    end
    arguments[i] = value
  end
  if #checked == 0 then
    invalid("rille.gradcheck: no argument is a tensor of f32 or f64", "dev:rand { 3, dtype = \"f64\" }")
  end
  weighted_sum(weights, fn(unpack(arguments, 1, count))):backward()
  for _, i in ipairs(checked) do
    local x = arguments[i]
    local shape, n, default = x:shape(), x:numel(), defaults[x.dtype]
    local step = number_option(options, "step", default.step)
    local tolerance = number_option(options, "tolerance", default.tolerance)
    local found = x.grad and x.grad:flatten():totable() or {}
    local values = x:detach():flatten():totable()
    local dev = rille.device(x.device)
    local function value_at(flat, offset)
      local moved = {}
      for j = 1, n do moved[j] = values[j] + (j == flat and offset or 0) end
      local changed = {}
      for j = 1, count do
        changed[j] = arguments[j]
        if native.kind(arguments[j]) ~= nil then changed[j] = arguments[j]:detach() end
      end
      changed[i] = dev:tensor(moved, { dtype = x.dtype }):reshape(shape)
      return weighted_sum(weights, fn(unpack(changed, 1, count))):item()
    end
    for flat = 1, n do
      local expected = (value_at(flat, step) - value_at(flat, -step)) / (2 * step)
      local given = found[flat] or 0
      if not (math.abs(given - expected) <= tolerance * math.max(1, math.abs(expected))) then
        rille.error { kind = "state", code = "gradient_differs",
          message = ("rille.gradcheck: argument %d at %s has the gradient %.6g, but differences give %.6g"):format(i,
            place_text(shape, flat), given, expected),
          hint = "check the formula of backward; where the function is not smooth, move the inputs away from there" }
      end
    end
  end
  return true
end

return gradcheck
