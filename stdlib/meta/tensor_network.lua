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

--- The mean of -log p(label) under softmax of these logits, 0-d; f32 for f16 and bf16.
---@param labels Tensor ids from 0; the logits' shape without its last dimension
---@param options? { ignore_index: number, label_smoothing: number } labels that do not count, -100; 0
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

--- Draws one position per row of probabilities, counting from 0.
---@return Tensor result
---@mark ephemeral
function Tensor:multinomial() end
