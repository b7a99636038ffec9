---@meta tensor_elementwise
--- Tensor methods that compute element by element. A number may replace an operand where the type says so.

---@class Tensor
local Tensor = {}

--- Sum, also `a + b`.
---@param b Tensor|number the other operand; shapes broadcast
---@param alpha? number what b is multiplied by, 1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:add(b, alpha) end

--- Difference, also `a - b`.
---@param b Tensor|number the other operand; shapes broadcast
---@param alpha? number what b is multiplied by, 1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:sub(b, alpha) end

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

--- The remainder of floor_divide, also `a % b`; it has the sign of b.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: whole numbers divided by zero
function Tensor:remainder(b) end

--- The quotient rounded towards minus infinity.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: whole numbers divided by zero
function Tensor:floor_divide(b) end

--- The angle of the point (b, a) from the x axis.
---@param b Tensor|number the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:atan2(b) end

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

--- -1, 0 or 1.
---@return Tensor result
---@mark ephemeral
function Tensor:sign() end

--- e to the power of each element.
---@return Tensor result
---@mark ephemeral
function Tensor:exp() end

--- 2 to the power of each element.
---@return Tensor result
---@mark ephemeral
function Tensor:exp2() end

--- exp(a) - 1, exact for small a.
---@return Tensor result
---@mark ephemeral
function Tensor:expm1() end

--- Natural logarithm.
---@return Tensor result
---@mark ephemeral
function Tensor:log() end

--- Logarithm to the base 2.
---@return Tensor result
---@mark ephemeral
function Tensor:log2() end

--- Logarithm to the base 10.
---@return Tensor result
---@mark ephemeral
function Tensor:log10() end

--- log(1 + a), exact for small a.
---@return Tensor result
---@mark ephemeral
function Tensor:log1p() end

--- Square root.
---@return Tensor result
---@mark ephemeral
function Tensor:sqrt() end

--- 1 / square root.
---@return Tensor result
---@mark ephemeral
function Tensor:rsqrt() end

--- a * a.
---@return Tensor result
---@mark ephemeral
function Tensor:square() end

--- 1 / a.
---@return Tensor result
---@mark ephemeral
function Tensor:reciprocal() end

--- Sine.
---@return Tensor result
---@mark ephemeral
function Tensor:sin() end

--- Cosine.
---@return Tensor result
---@mark ephemeral
function Tensor:cos() end

--- Tangent.
---@return Tensor result
---@mark ephemeral
function Tensor:tan() end

--- Arc sine.
---@return Tensor result
---@mark ephemeral
function Tensor:asin() end

--- Arc cosine.
---@return Tensor result
---@mark ephemeral
function Tensor:acos() end

--- Arc tangent.
---@return Tensor result
---@mark ephemeral
function Tensor:atan() end

--- Hyperbolic sine.
---@return Tensor result
---@mark ephemeral
function Tensor:sinh() end

--- Hyperbolic cosine.
---@return Tensor result
---@mark ephemeral
function Tensor:cosh() end

--- The error function.
---@return Tensor result
---@mark ephemeral
function Tensor:erf() end

--- Rounds down; the gradient is zero.
---@return Tensor result
---@mark ephemeral
function Tensor:floor() end

--- Rounds up; the gradient is zero.
---@return Tensor result
---@mark ephemeral
function Tensor:ceil() end

--- Rounds to the nearest whole number, halves to the even one; the gradient is zero.
---@return Tensor result
---@mark ephemeral
function Tensor:round() end

--- Rounds towards zero; the gradient is zero.
---@return Tensor result
---@mark ephemeral
function Tensor:trunc() end

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

--- GELU: in its tanh form, as in GPT-2, or the exact one with erf, as in BERT.
---@param form? string "tanh" (the default) or "none", the exact one
---@return Tensor result
---@mark ephemeral
function Tensor:gelu(form) end

--- a * sigmoid(a), also called swish.
---@return Tensor result
---@mark ephemeral
function Tensor:silu() end

--- a where it is positive, slope * a elsewhere.
---@param slope? number 0.01
---@return Tensor result
---@mark ephemeral
function Tensor:leaky_relu(slope) end

--- a where it is positive, alpha * (exp(a) - 1) elsewhere.
---@param alpha? number 1
---@return Tensor result
---@mark ephemeral
function Tensor:elu(alpha) end

--- log(1 + exp(beta * a)) / beta.
---@param beta? number 1
---@return Tensor result
---@mark ephemeral
function Tensor:softplus(beta) end

--- a * clamp(a + 3, 0, 6) / 6.
---@return Tensor result
---@mark ephemeral
function Tensor:hardswish() end

--- clamp(a + 3, 0, 6) / 6.
---@return Tensor result
---@mark ephemeral
function Tensor:hardsigmoid() end

--- Not below `low` and not above `high`.
---@param low? number nil: no lower bound
---@param high? number nil: no upper bound
---@return Tensor result
---@mark ephemeral
---@error invalid no bound, or the lower one above the upper one
function Tensor:clamp(low, high) end

--- a where this (bool) is true, b elsewhere.
---@param a Tensor|number taken where true
---@param b Tensor|number taken where false
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:where(a, b) end

--- `value` where the mask is true, itself elsewhere.
---@param mask Tensor bool, broadcast to this shape
---@param value number the number
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:masked_fill(mask, value) end

--- Zeroes each element with probability p and scales the rest.
---@param p number from 0 to below 1
---@param training? boolean false gives the tensor itself; true by default
---@return Tensor result
---@mark ephemeral
function Tensor:dropout(p, training) end

--- Whether each element is NaN. Gives bool.
---@return Tensor result
---@mark ephemeral
function Tensor:isnan() end

--- Whether each element is infinite. Gives bool.
---@return Tensor result
---@mark ephemeral
function Tensor:isinf() end

--- Whether each element is a finite number. Gives bool.
---@return Tensor result
---@mark ephemeral
function Tensor:isfinite() end

--- Whether both are not zero. Gives bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:logical_and(b) end

--- Whether one of them is not zero. Gives bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:logical_or(b) end

--- Whether exactly one of them is not zero. Gives bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:logical_xor(b) end

--- Whether each element is zero. Gives bool.
---@return Tensor result
---@mark ephemeral
function Tensor:logical_not() end

--- Bitwise and; whole numbers and bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:bitwise_and(b) end

--- Bitwise or; whole numbers and bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:bitwise_or(b) end

--- Bitwise exclusive or; whole numbers and bool.
---@param b Tensor the other operand; shapes broadcast
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:bitwise_xor(b) end

--- Inverts every bit of whole numbers, and bool.
---@return Tensor result
---@mark ephemeral
---@error invalid for floating types
function Tensor:bitwise_not() end
