---@meta tensor_index
--- Tensor methods that select, place and sort elements by index.

---@class Tensor
local Tensor = {}

--- For each entry of `index`, takes the element at that index along the dimension.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0; same number of dimensions, other sizes no larger
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:gather(dim, index) end

--- A copy with `src` written where gather would read; for repeated places the last value wins.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0
---@param src Tensor|number of index's shape
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:scatter(dim, index, src) end

--- A copy with `src` added where gather would read.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0
---@param src Tensor|number of index's shape
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:scatter_add(dim, index, src) end

--- A copy with `src` written at the listed positions of one dimension; for repeated positions the last value wins.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@param src Tensor of this shape, except that its size along the dimension is the list's length
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_copy(dim, index, src) end

--- A copy with `src` added at the listed positions of one dimension.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@param src Tensor of this shape, except that its size along the dimension is the list's length
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_add(dim, index, src) end

--- The listed positions of one dimension.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_select(dim, index) end

--- The elements where the mask is true, in order. Their number must be read: it waits, and cannot be used inside a
--- compiled function; `mask:where(x, 0)` keeps the shape instead.
--- Rows: `x:index_select(1, mask:nonzero():select(2, 1))`.
---@param mask Tensor bool, of this tensor's shape or broadcast to it
---@return Tensor result 1-d
---@mark ephemeral
---@async
---@error invalid a mask that is not bool, or cannot be broadcast to the shape
---@error state inside a compiled function, where there are no values yet
function Tensor:masked_select(mask) end

--- The indices of nonzero elements: a row per element with its index in each dimension. It waits, as masked_select.
---@return Tensor places i64 [count, dimensions], counting from 0
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
function Tensor:nonzero() end

--- One-hot rows for these ids; i64 [.., classes].
---@param classes number how many
---@return Tensor result
---@mark ephemeral
function Tensor:one_hot(classes) end

--- Sorts along one dimension. The order of equal elements is kept; NaN is larger than any number.
---@param dim? number the last by default; or a table of options
---@param options? { descending: boolean } false
---@return Tensor values
---@return Tensor places i64, counting from 0
---@mark ephemeral
function Tensor:sort(dim, options) end

--- The places from sort.
---@param dim? number the last by default; or a table of options
---@param options? { descending: boolean } false
---@return Tensor places i64, counting from 0
---@mark ephemeral
function Tensor:argsort(dim, options) end

--- The k largest along one dimension, in order.
---@param k number how many
---@param dim? number the last by default; or a table of options
---@param options? { largest: boolean } true; false: the smallest
---@return Tensor values
---@return Tensor places i64, counting from 0
---@mark ephemeral
---@error invalid k is larger than the dimension
function Tensor:topk(k, dim, options) end
