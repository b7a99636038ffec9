-- rille.custom_grad: functions with a gradient written by the script.
local native = require "rille.native"
local rille = require "rille"

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local example = "rille.custom_grad { forward = function(kept, x) .. end, backward = function(kept, gy) .. end }"

-- Returns the results of the script's forward function as a list; raises unless all are tensors.
local function outputs_of(...)
  local out = { ... }
  for i = 1, select("#", ...) do
    if native.kind(out[i]) == nil then
      invalid(("rille.custom_grad: forward gave %s; a tensor is needed"):format(tostring(out[i])),
        "store other data for backward in its first argument")
    end
  end
  if #out == 0 then invalid("rille.custom_grad: forward gave nothing; a tensor is needed") end
  return out
end

---@class rille.custom_grad.Rules
---@field forward fun(kept: table, ...: any): Tensor returns one tensor or several, from the arguments of the call
---@field backward fun(kept: table, ...: Tensor): Tensor? from the gradients of the results, returns one gradient for
---each argument, nil where it has none or is not a tensor

---Makes a function of tensors with a gradient of the script's own, for example for a user kernel, through which no
---gradient flows by itself. `forward` gets an empty table and the arguments of the call; it stores there what
---`backward` needs. `backward` gets that table and the gradient of each result (zeros if there was none), and returns a
---gradient for each argument, of its shape and type. Neither is recorded for second gradients; both may launch kernels,
---work under `rille.compile`, and must not read values or wait. Data in the table must not be overwritten before
---`backward`; this is not checked.
---@param rules rille.custom_grad.Rules both functions
---@return fun(...: any): Tensor called with tensors and plain values
---@mark ephemeral
---@error invalid a result of forward that is not a float tensor; a gradient of another shape or type than its argument
---@error state a second backward through the same call
---@example
---local cube = rille.custom_grad {
---  forward = function(kept, x)
---    kept.x = x
---    return x * x * x
---  end,
---  backward = function(kept, gy) return gy * kept.x * kept.x * 3 end,
---}
---local x = rille.device():tensor({ 2 }):requires_grad_()
---cube(x):sum():backward()
---print(x.grad:item())                                     --> 12
local function custom_grad(rules)
  native.check_options(rules, "rille.custom_grad", { "forward", "backward" })
  for _, name in ipairs { "forward", "backward" } do
    native.check_callable(type(rules) == "table" and rules[name] or nil, "rille.custom_grad's " .. name, example)
  end
  return function(...)
    local kept, count, given = {}, select("#", ...), { ... }
    local inputs, places = {}, {}
    for i = 1, count do
      if native.kind(given[i]) ~= nil then
        inputs[#inputs + 1], places[#places + 1] = given[i], i
      end
    end
    local outputs = outputs_of(rille.no_grad(rules.forward, kept, ...))
    return native.custom_grad(inputs, outputs, function(...)
      local grads, list = { rules.backward(kept, ...) }, {}
      for n, i in ipairs(places) do list[n] = grads[i] end
      return unpack(list, 1, #places)
    end)
  end
end

return custom_grad
