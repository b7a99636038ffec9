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

--- Sum, also `a + b`.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:add(b) end

--- Difference, also `a - b`.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:sub(b) end

--- Product, also `a * b`.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:mul(b) end

--- True quotient, also `a / b`; integers give f32.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:div(b) end

--- Power, also `a ^ b`.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:pow(b) end

--- The larger of two, element by element.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:maximum(b) end

--- The smaller of two, element by element.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:minimum(b) end

--- Compares element by element: a < b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:lt(b) end

--- Compares element by element: a <= b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:le(b) end

--- Compares element by element: a > b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:gt(b) end

--- Compares element by element: a >= b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:ge(b) end

--- Compares element by element: a == b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:eq(b) end

--- Compares element by element: a ~= b. Gives bool.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:ne(b) end

--- Negative, also `-a`.
---@return Tensor result
---@mark ephemeral
function Tensor:neg() end

--- Absolute value.
---@return Tensor result
---@mark ephemeral
function Tensor:abs() end

--- e to the power of each element.
---@return Tensor result
---@mark ephemeral
function Tensor:exp() end

--- Natural logarithm.
---@return Tensor result
---@mark ephemeral
function Tensor:log() end

--- Square root.
---@return Tensor result
---@mark ephemeral
function Tensor:sqrt() end

--- 1 / square root.
---@return Tensor result
---@mark ephemeral
function Tensor:rsqrt() end

--- Hyperbolic tangent.
---@return Tensor result
---@mark ephemeral
function Tensor:tanh() end

--- 1 / (1 + exp(-a)).
---@return Tensor result
---@mark ephemeral
function Tensor:sigmoid() end

--- max(a, 0).
---@return Tensor result
---@mark ephemeral
function Tensor:relu() end

--- GELU in its tanh form, as in GPT-2.
---@return Tensor result
---@mark ephemeral
function Tensor:gelu() end

--- Draws one position per row of probabilities, counting from 0.
---@return Tensor result
---@mark ephemeral
function Tensor:multinomial() end

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

--- Adds up.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:sum(dims, keepdim) end

--- The mean.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:mean(dims, keepdim) end

--- The largest; ties share the gradient.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:max(dims, keepdim) end

--- The smallest; ties share the gradient.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:min(dims, keepdim) end

--- Where the largest is, counting from 0; the first of ties.
---@param dim? number from 1, -1 is the last
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:argmax(dim, keepdim) end

--- exp(a), scaled so that the dimension sums to 1.
---@param dim? number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
function Tensor:softmax(dim) end

--- The logarithm of softmax.
---@param dim? number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
function Tensor:log_softmax(dim) end

--- Matrix product: [.., m, k] x [.., k, n].
---@param b Tensor the right operand
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:matmul(b) end

--- x W' + b, fused.
---@param weight Tensor [outputs, inputs]
---@param bias? Tensor [outputs]
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:linear(weight, bias) end

--- Normalises the last dimension.
---@param weight? Tensor scale
---@param bias? Tensor shift
---@param eps? number 1e-5
---@return Tensor result
---@mark ephemeral
function Tensor:layer_norm(weight, bias, eps) end

--- Rows of `weight` by these ids.
---@param weight Tensor [count, width]
---@return Tensor result
---@mark ephemeral
function Tensor:embedding(weight) end

--- The mean of -log p(label) under softmax of these logits, 0-d.
---@param labels Tensor ids from 0; the logits' shape without its last dimension
---@param options? { ignore_index: number } labels that do not count; -100
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:cross_entropy(labels, options) end

--- softmax(q k' * scale) v for q [b, h, t, d].
---@param k Tensor [b, h, s, d]
---@param v Tensor [b, h, s, d]
---@param options? { causal: boolean, scale: number } false, 1/sqrt(d)
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:scaled_dot_product_attention(k, v, options) end

--- Zeroes each element with probability p and scales the rest.
---@param p number from 0 to below 1
---@param training? boolean false gives the tensor itself; true by default
---@return Tensor result
---@mark ephemeral
function Tensor:dropout(p, training) end

--- a where this (bool) is true, b elsewhere.
---@param a Tensor taken where true
---@param b Tensor taken where false
---@return Tensor result
---@mark ephemeral
function Tensor:where(a, b) end

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

return Tensor
