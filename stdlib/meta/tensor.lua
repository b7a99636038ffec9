---@meta tensor
--- A lazy array. Operations are recorded; reading a value runs what is needed and suspends only the fiber.
---
--- `+ - * / ^` and unary `-` work with tensors and numbers; `==` is identity, `<` and `<=` are refused and name `lt`
--- and `le`. Dimensions and positions count from 1, -1 is the last; what is stored (ids, labels, argmax) counts from 0.

---@class Tensor
---@field grad Tensor? the sum of gradients from backward(), or nil
---@field requires_grad boolean whether gradients are recorded for it
---@field dtype string "f32", "i64", ...
---@field device string its device: "cpu"
local Tensor = {}

--- The same memory without history.
---@return Tensor result
---@mark ephemeral
function Tensor:detach() end

--- Adds b * alpha to it, in place.
---@param b Tensor|number what to add
---@param alpha? number 1
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient
---@error invalid an expanded tensor, in which several elements share memory
function Tensor:add_(b, alpha) end

--- Subtracts b, in place.
---@param b Tensor|number what to subtract
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient, or gradients are recorded for b
---@error invalid an expanded tensor, in which several elements share memory; fractions from whole numbers
function Tensor:sub_(b) end

--- Multiplies it, in place.
---@param b Tensor|number the factor
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient, or gradients are recorded for b
---@error invalid an expanded tensor, in which several elements share memory; fractions into whole numbers
function Tensor:mul_(b) end

--- Divides it, in place; floating types only.
---@param b Tensor|number the divisor
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient, or gradients are recorded for b
---@error invalid whole numbers; an expanded tensor, in which several elements share memory
function Tensor:div_(b) end

--- Overwrites it; casts and broadcasts.
---@param b Tensor the values
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient
---@error invalid an expanded tensor, in which several elements share memory
function Tensor:copy_(b) end

--- Overwrites it with one number.
---@param value number the number
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient
function Tensor:fill_(value) end

--- Overwrites it with zeros.
---@return Tensor itself
---@mark ephemeral
---@error state it is needed by a recorded gradient
function Tensor:zero_() end

--- Adds d this / d leaf to the `.grad` of each leaf.
---@param gradient? Tensor d loss / d this; needed unless this has one element
---@mark ephemeral
---@error state no input requires grad, or backward was called before
function Tensor:backward(gradient) end

--- Turns gradient recording for it on or off.
---@param on? boolean true
---@return Tensor itself
---@mark ephemeral
---@error state it is not a leaf, or not of a floating type
function Tensor:requires_grad_(on) end

--- Sets `.grad`; nil clears it.
---@param gradient? Tensor of the same shape and type
---@mark ephemeral
function Tensor:set_grad(gradient) end

--- Frees its memory now; the handle is invalid afterwards.
---@mark ephemeral
function Tensor:free() end

--- Casts, or copies to a device: through this machine's memory; only the calling fiber waits for it.
---@param target string|Device a type such as "f64", or a device
---@return Tensor result
---@mark ephemeral
---@async
---@error state it has a gradient history: use its detach()
function Tensor:to(target) end

--- Reads its only element.
---@return number|boolean value
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory memory is exhausted, even after a collection; the hint lists what is live
function Tensor:item() end

--- Reads all values.
---@return table values nested lists
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory memory is exhausted, even after a collection; the hint lists what is live
function Tensor:totable() end

--- Reads the bytes of all values in row-major order, little-endian: for files and sockets, without a table of numbers.
--- `dev:from_bytes` is the inverse.
---@return string bytes
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@example
--- print(#dev:ones { 2, 3 }:bytes())    --> 24
function Tensor:bytes() end

--- Reads its printed form, shortened to three values at each end.
---@return string text
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory memory is exhausted, even after a collection; the hint lists what is live
function Tensor:text() end
