-- rille.autocast: products in a smaller type, everything else as it is.
local native = require "rille.native"

local function restore(before, ok, ...)
  native.set_autocast(before)
  if not ok then error((...), 0) end
  return ...
end

---Calls fn(...) with mixed precision: products, `linear` and convolutions of f32 tensors are done in `dtype`, with sums
---in f32, and give `dtype`; element-wise operations meet at the larger type; parameters, their gradients and the
---optimizer stay f32. What fn(...) returns is not cast. Call the model in it, and the loss and `backward` outside.
---@generic R
---"tf32" changes no type: products and convolutions of f32 tensors may be rounded to TF32 (ten bits of mantissa, sums
---in f32) on GPUs that have it, sm_80 and later, and so are their gradients' products; on the CPU they are f32.
---@param dtype string "bf16", "f16", "tf32", or "f32", which changes nothing
---@param fn fun(...): R the function
---@param ... any the arguments of the function
---@return R
---@mark ephemeral
---@error invalid dtype is none of these, or fn is no function
---@example
--- local dev, layer = rille.device(), rille.nn.linear(8, 8)
--- local y = rille.autocast("bf16", layer, dev:ones { 4, 8 })
--- print(y.dtype)
local function autocast(dtype, fn, ...)
  native.check_callable(fn, "rille.autocast", 'rille.autocast("bf16", model, x)')
  local before = native.set_autocast(dtype)
  native.autocast_used = dtype  -- for who measures what is trained so: stdlib/tools/meter.lua
  return restore(before, xpcall(fn, native.trace, ...))
end

return autocast
