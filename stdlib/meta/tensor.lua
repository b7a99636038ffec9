---@meta tensor
--- A lazy array. Making one records what to compute; reading a value runs what is needed and suspends only the fiber.
---
--- `+ - * / ^` and unary `-` work with tensors and numbers; `==` is identity, `<` and `<=` are refused and name `lt`
--- and `le`. Dimensions and positions count from 1, -1 is the last; what is stored (ids, labels, argmax) counts from 0.

---@class Tensor
---@field grad Tensor? what backward() added up, or nil
---@field requires_grad boolean whether gradients are recorded for it
---@field dtype string "f32", "i64", ...
---@field device string where it is: "cpu"
local Tensor = {}

--- The same values without holes in memory; itself when it has none.
---@return Tensor result
---@mark ephemeral
function Tensor:contiguous() end

--- A copy in fresh memory.
---@return Tensor result
---@mark ephemeral
function Tensor:clone() end

--- The same memory without history.
---@return Tensor result
---@mark ephemeral
function Tensor:detach() end

--- Its sizes.
---@return table sizes
---@mark ephemeral
function Tensor:shape() end

--- One size.
---@param dim number from 1, -1 is the last
---@return number size
---@mark ephemeral
function Tensor:size(dim) end

--- How many dimensions it has.
---@return number dimensions
---@mark ephemeral
function Tensor:dim() end

--- How many elements it has.
---@return number elements
---@mark ephemeral
function Tensor:numel() end

--- The same elements in another shape; copies only when it must.
---@param ... number|table the sizes; one may be -1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:reshape(...) end

--- As reshape, but never copies.
---@param ... number|table the sizes; one may be -1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:view(...) end

--- Repeats dimensions of size 1 without memory; -1 keeps a size.
---@param ... number|table the sizes; one may be -1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:expand(...) end

--- Orders the dimensions anew.
---@param ... number|table the dimensions, each once
---@return Tensor result
---@mark ephemeral
function Tensor:permute(...) end

--- Swaps two dimensions; without arguments the last two.
---@param a? number a dimension
---@param b? number a dimension
---@return Tensor result
---@mark ephemeral
function Tensor:transpose(a, b) end

--- A part of one dimension; shares memory.
---@param dim number from 1, -1 is the last
---@param start number first position, from 1
---@param length number how many
---@return Tensor result
---@mark ephemeral
---@error invalid a position outside of the dimension
function Tensor:narrow(dim, start, length) end

--- One position of a dimension, which goes away; shares memory.
---@param dim number from 1, -1 is the last
---@param position number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
---@error invalid a position outside of the dimension
function Tensor:select(dim, position) end

--- Without a dimension of size 1.
---@param dim number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
function Tensor:squeeze(dim) end

--- With a new dimension of size 1.
---@param dim number where, from 1
---@return Tensor result
---@mark ephemeral
function Tensor:unsqueeze(dim) end

--- This and others after each other.
---@param others table|Tensor one tensor or a list
---@param dim? number the first by default
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:cat(others, dim) end

--- Equal parts (the last may be smaller), as several results; they share memory.
---@param pieces number how many
---@param dim? number the first by default
---@return Tensor ... the parts
---@mark ephemeral
function Tensor:chunk(pieces, dim) end

--- Adds b * alpha to it, in place.
---@param b Tensor what to add
---@param alpha? number 1
---@return Tensor itself
---@mark ephemeral
---@error state gradients are being recorded for what would be overwritten
function Tensor:add_(b, alpha) end

--- Multiplies it, in place.
---@param b Tensor|number the factor
---@return Tensor itself
---@mark ephemeral
---@error state gradients are being recorded for what would be overwritten
function Tensor:mul_(b) end

--- Overwrites it; casts and broadcasts.
---@param b Tensor the values
---@return Tensor itself
---@mark ephemeral
---@error state gradients are being recorded for what would be overwritten
function Tensor:copy_(b) end

--- Overwrites it with one number.
---@param value number the number
---@return Tensor itself
---@mark ephemeral
---@error state gradients are being recorded for what would be overwritten
function Tensor:fill_(value) end

--- Overwrites it with zeros.
---@return Tensor itself
---@mark ephemeral
---@error state gradients are being recorded for what would be overwritten
function Tensor:zero_() end

--- Adds d this / d leaf to the `.grad` of each leaf.
---@param gradient? Tensor d loss / d this; needed unless this has one element
---@mark ephemeral
---@error state nothing here requires grad, or it was called before
function Tensor:backward(gradient) end

--- Has gradients recorded for it, or not.
---@param on? boolean true
---@return Tensor itself
---@mark ephemeral
---@error state it is no leaf, or no floating type
function Tensor:requires_grad_(on) end

--- Sets `.grad`; nil clears it.
---@param gradient? Tensor of the same shape and type
---@mark ephemeral
function Tensor:set_grad(gradient) end

--- Gives its memory back now; the handle is dead then.
---@mark ephemeral
function Tensor:free() end

--- Casts, or moves to a device.
---@param target string|Device a type such as "f64", or a device
---@return Tensor result
---@mark ephemeral
function Tensor:to(target) end

--- Reads its one element.
---@return number|boolean value
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory there was not enough, after a collection; the hint lists what is live
function Tensor:item() end

--- Reads all values.
---@return table values nested lists
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory there was not enough, after a collection; the hint lists what is live
function Tensor:totable() end

--- Reads it as print shows it, shortened to three values at each end.
---@return string text
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
---@error memory there was not enough, after a collection; the hint lists what is live
function Tensor:text() end
