---@meta tensor_network
--- Tensor methods for networks: products, normalisation, tables, losses, attention.

---@class Tensor
local Tensor = {}

--- Matrix product: [.., m, k] x [.., k, n].
---@param b Tensor the right operand
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:matmul(b) end

--- Einstein summation: `a:einsum("ij,jk->ik", b)`. Letters missing in the result are summed.
---@param equation string a letter for each dimension; without "->" the result has the letters that occur once
---@param ... Tensor the other operands
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:einsum(equation, ...) end

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

--- The rows of `weight` at these ids.
---@param weight Tensor [count, width]
---@return Tensor result
---@mark ephemeral
function Tensor:embedding(weight) end

--- The mean of -log p(label) under softmax of these logits, 0-d; f32 for f16 and bf16.
--- `ignore_index` (-100): a label to skip. `reduction`: "mean" (the default), "sum" or "none", which returns the loss
--- of each label, 0 for skipped ones. `weight` [c]: a weight per class; a mean is divided by the sum of the weights.
---@param labels Tensor ids from 0; the logits' shape without its last dimension
---@param options? table ignore_index, label_smoothing (0), reduction, weight
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:cross_entropy(labels, options) end

--- softmax(q k' * scale + mask) v for q [b, h, t, d]; groups of query heads may share keys.
--- A mask broadcasts to [b, h, t, s]: bool, true where a key is visible, or numbers to add. `lengths` [b]: the number
--- of keys. With `causal` the last query sees all keys, as a key-value cache needs, also with fewer queries than keys;
--- torch's `is_causal` aligns the first query with the first key.
---@param k Tensor [b, g, s, d], g a divisor of h
---@param v Tensor [b, g, s, e]
---@param options? table causal (false), scale (1/sqrt(d)), mask, lengths
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:scaled_dot_product_attention(k, v, options) end

--- Samples positions from each row of probabilities, counting from 0: one, [..], or `n`, [.., n].
---@param n? number how many
---@param options? { replacement: boolean } true; required if n is more than 1: draws are independent
---@return Tensor result
---@mark ephemeral
---@error invalid more than one draw without replacement
function Tensor:multinomial(n, options) end

--- Divides by the root of the mean square of the last dimension.
---@param weight? Tensor scale
---@param eps? number 1e-6
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:rms_norm(weight, eps) end

--- Rotary position embedding: rotates pairs of [.., t, d] by the angles of their positions.
---@param cos Tensor [t, d/2], from `dev:rope_angles`
---@param sin Tensor [t, d/2]
---@param options? { interleaved: boolean } false: pairs (i, i + d/2); true: neighbours
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:rope(cos, sin, options) end

--- The negative mean of these log-probabilities at the labels; 0-d.
---@param labels Tensor ids from 0; this shape without its last dimension
---@param options? { ignore_index: number, reduction: string, weight: Tensor } as cross_entropy
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:nll_loss(labels, options) end

--- The squared difference.
---@param target Tensor of the same shape
---@param how? string "mean" (the default), "sum" or "none"
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:mse_loss(target, how) end

--- The absolute difference.
---@param target Tensor of the same shape
---@param how? string "mean" (the default), "sum" or "none"
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:l1_loss(target, how) end

--- Half the squared difference where it is less than 1, the difference less a half elsewhere (Girshick 2015).
---@param target Tensor of the same shape
---@param how? string "mean" (the default), "sum" or "none"
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:smooth_l1_loss(target, how) end

--- -log p(target) under sigmoid of these logits.
---@param target Tensor of the same shape, from 0 to 1
---@param how? string "mean" (the default), "sum" or "none"
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:binary_cross_entropy_with_logits(target, how) end
