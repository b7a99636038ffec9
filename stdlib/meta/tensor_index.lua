---@meta tensor_index
--- Tensor methods that choose, place and order elements by number.

---@class Tensor
local Tensor = {}

--- Takes, at each place of `index`, the element of this row that the number there names.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0; as many dimensions, elsewhere no larger
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:gather(dim, index) end

--- Itself, with `src` put where gather would read; of several at one place the last stays.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0
---@param src Tensor|number of index's shape
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:scatter(dim, index, src) end

--- Itself, with `src` added where gather would read.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0
---@param src Tensor|number of index's shape
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:scatter_add(dim, index, src) end

--- Itself, with `src` put at the positions of one dimension that a list names; of several at one the last stays.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@param src Tensor of this shape, but along the dimension as long as the list
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_copy(dim, index, src) end

--- Itself, with `src` added at the positions of one dimension that a list names.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@param src Tensor of this shape, but along the dimension as long as the list
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_add(dim, index, src) end

--- The positions of one dimension that a list names.
---@param dim number from 1, -1 is the last
---@param index Tensor whole numbers, counting from 0, 1-d
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
---@error invalid when it is read: a number out of range
function Tensor:index_select(dim, index) end

--- The elements where the mask is true, in their order. How many there are is read: it waits, and has no place inside a
--- compiled function; `mask:where(x, 0)` keeps the shape instead.
--- Rows: `x:index_select(1, mask:nonzero():select(2, 1))`.
---@param mask Tensor bool, of this tensor's shape or one that repeats to it
---@return Tensor result 1-d
---@mark ephemeral
---@async
---@error invalid a mask that is not bool, or does not repeat to the shape
---@error state inside a compiled function, where there are no values yet
function Tensor:masked_select(mask) end

--- Where it is not zero: a row for each such element, with its number in each dimension. It waits, as masked_select.
---@return Tensor places i64 [count, dimensions], counting from 0
---@mark ephemeral
---@async
---@error state inside a compiled function, where there are no values yet
function Tensor:nonzero() end

--- These ids as rows of zeros with a one; i64 [.., classes].
---@param classes number how many
---@return Tensor result
---@mark ephemeral
function Tensor:one_hot(classes) end

--- In order along one dimension. Equal ones keep their order; a NaN is larger than any number.
---@param dim? number the last by default; the options may stand in its place
---@param options? { descending: boolean } false
---@return Tensor values
---@return Tensor places i64, counting from 0
---@mark ephemeral
function Tensor:sort(dim, options) end

--- The places that sort gives.
---@param dim? number the last by default; the options may stand in its place
---@param options? { descending: boolean } false
---@return Tensor places i64, counting from 0
---@mark ephemeral
function Tensor:argsort(dim, options) end

--- The k largest along one dimension, in order.
---@param k number how many
---@param dim? number the last by default; the options may stand in its place
---@param options? { largest: boolean } true; false: the smallest
---@return Tensor values
---@return Tensor places i64, counting from 0
---@mark ephemeral
---@error invalid more than there are
function Tensor:topk(k, dim, options) end
