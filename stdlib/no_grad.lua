-- rille.no_grad: runs code without recording gradients.
local native = require "rille.native"

local function restore(before, ok, ...)
  native.set_grad_enabled(before)
  if not ok then error((...), 0) end
  return ...
end

---Calls fn(...) without recording gradients, and returns its results.
---@generic R
---@param fn fun(...): R the function
---@param ... any the arguments of the function
---@return R
---@mark ephemeral
---@error invalid fn is not a function
local function no_grad(fn, ...)
  native.check_callable(fn, "rille.no_grad", "rille.no_grad(function() return model(x) end)")
  return restore(native.set_grad_enabled(false), xpcall(fn, native.trace, ...))
end

return no_grad
