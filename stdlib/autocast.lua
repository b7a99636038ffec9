-- rille.autocast: computes products in a smaller type and everything else unchanged.
local native = require "rille.native"

local function restore(before, ok, ...)
  native.set_autocast(before)
  if not ok then error((...), 0) end
  return ...
end

---Calls fn(...) with mixed precision: products, `linear` and convolutions of f32 tensors are computed in `dtype`, with
---sums in f32, and return `dtype`; element-wise operations convert to the larger type; parameters, their gradients and
---the optimizer stay f32. The result of fn(...) is not cast. Call the model inside, the loss and `backward` outside.
---@generic R
---"tf32" changes no type: GPUs with TF32 (sm_80 and later) may round products and convolutions of f32 tensors to TF32
---(ten bits of mantissa, sums in f32), and the products in their gradients too; on the CPU they stay f32.
---@param dtype string "bf16", "f16", "tf32", or "f32", which changes nothing
---@param fn fun(...): R the function
---@param ... any the arguments of the function
---@return R
---@mark ephemeral
---@error invalid dtype is none of these, or fn is not a function
---@example
--- local dev, layer = rille.device(), rille.nn.linear(8, 8)
--- local y = rille.autocast("bf16", layer, dev:ones { 4, 8 })
--- print(y.dtype)
local function autocast(dtype, fn, ...)
  native.check_callable(fn, "rille.autocast", 'rille.autocast("bf16", model, x)')
  local before = native.set_autocast(dtype)
  native.autocast_used = dtype  -- stdlib/tools/meter.lua reads it, to report the precision
  return restore(before, xpcall(fn, native.trace, ...))
end

return autocast
