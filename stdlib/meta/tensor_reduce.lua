---@meta tensor_reduce
--- Tensor methods that reduce dimensions, or run along one.

---@class Tensor
local Tensor = {}

--- The sum.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:sum(dims, keepdim) end

--- The mean.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:mean(dims, keepdim) end

--- The product.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:prod(dims, keepdim) end

--- The largest; ties share the gradient. With a single dimension also its position, counting from 0.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@return Tensor? places i64, the first of ties; only with one dimension
---@mark ephemeral
function Tensor:max(dims, keepdim) end

--- The smallest; ties share the gradient. With a single dimension also its position, counting from 0.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@return Tensor? places i64, the first of ties; only with one dimension
---@mark ephemeral
function Tensor:min(dims, keepdim) end

--- The position of the largest element, counting from 0; the first of ties.
---@param dim? number from 1, -1 is the last; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:argmax(dim, keepdim) end

--- The position of the smallest element, counting from 0; the first of ties.
---@param dim? number from 1, -1 is the last; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:argmin(dim, keepdim) end

--- Whether any element is not zero. Gives bool.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:any(dims, keepdim) end

--- Whether all elements are not zero. Gives bool.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:all(dims, keepdim) end

--- The variance.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param options? { correction: number, keepdim: boolean } 1: estimated from a sample, 0: of these numbers; false
---@return Tensor result
---@mark ephemeral
---@error invalid fewer elements than the correction needs
function Tensor:var(dims, options) end

--- The standard deviation.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param options? { correction: number, keepdim: boolean } 1: estimated from a sample, 0: of these numbers; false
---@return Tensor result
---@mark ephemeral
---@error invalid fewer elements than the correction needs
function Tensor:std(dims, options) end

--- The p-norm; its gradient at zero is zero.
---@param p? number 2; math.huge for the largest absolute value
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:norm(p, dims, keepdim) end

--- The logarithm of the sum of the exponentials.
---@param dims? number|table a dimension or a list, from 1, -1 is the last; nil: all; or a table of options
---@param keepdim? boolean keep the reduced dimensions with size 1
---@return Tensor result
---@mark ephemeral
function Tensor:logsumexp(dims, keepdim) end

--- The cumulative sum along one dimension.
---@param dim? number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
function Tensor:cumsum(dim) end

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
