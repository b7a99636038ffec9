---@meta tensor_shape
--- Tensor methods about shapes: views where the memory layout allows them; and tensors like this one. `t[2]` is
--- `t:select(1, 2)`; `t[{ {1, 3}, {}, 2 }]` takes positions 1 to 3, all, and position 2: these are views, too. `t[...]
--- = u` writes in place.

---@class Tensor
local Tensor = {}

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

--- The same elements in another shape; copies only if necessary.
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

--- Reorders the dimensions.
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

--- One position of a dimension, which is removed; shares memory.
---@param dim number from 1, -1 is the last
---@param position number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
---@error invalid a position outside of the dimension
function Tensor:select(dim, position) end

--- Removes a dimension of size 1.
---@param dim number from 1, -1 is the last
---@return Tensor result
---@mark ephemeral
function Tensor:squeeze(dim) end

--- Inserts a dimension of size 1.
---@param dim number where, from 1
---@return Tensor result
---@mark ephemeral
function Tensor:unsqueeze(dim) end

--- The same values without gaps in memory; itself if it has none.
---@return Tensor result
---@mark ephemeral
function Tensor:contiguous() end

--- A copy in new memory.
---@return Tensor result
---@mark ephemeral
function Tensor:clone() end

--- Concatenates this and other tensors.
---@param others table|Tensor one tensor or a list
---@param dim? number the first by default
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:cat(others, dim) end

--- Splits into equal parts (the last may be smaller), as several results; they share memory.
---@param pieces number how many
---@param dim? number the first by default
---@return Tensor ... the parts
---@mark ephemeral
function Tensor:chunk(pieces, dim) end

--- The lower triangle of matrices; the rest is zero.
---@param diagonal? number 0; elements above it are zero
---@return Tensor result
---@mark ephemeral
---@error invalid fewer than two dimensions
function Tensor:tril(diagonal) end

--- The upper triangle of matrices; the rest is zero.
---@param diagonal? number 0; elements below it are zero
---@return Tensor result
---@mark ephemeral
---@error invalid fewer than two dimensions
function Tensor:triu(diagonal) end

--- Reverses the order along dimensions.
---@param dims? number|table a dimension or a list; nil: all
---@return Tensor result
---@mark ephemeral
function Tensor:flip(dims) end

--- Rotates along a dimension: elements that leave at one end enter at the other.
---@param shift number how far
---@param dim? number the last by default
---@return Tensor result
---@mark ephemeral
function Tensor:roll(shift, dim) end

--- Repeats the whole tensor, as PyTorch's repeat.
---@param ... number|table how often, for each dimension
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:tile(...) end

--- Repeats each element.
---@param times number how often
---@param dim? number the last by default
---@return Tensor result
---@mark ephemeral
function Tensor:repeat_interleave(times, dim) end

--- Merges consecutive dimensions into one.
---@param first? number 1
---@param last? number -1
---@return Tensor result
---@mark ephemeral
function Tensor:flatten(first, last) end

--- Adds edges around it.
---@param edges table widths before and after the last dimension, then of the one before it, ...
---@param value? number 0
---@return Tensor result
---@mark ephemeral
---@error invalid an odd number of edges, too many, or a negative one
function Tensor:pad(edges, value) end

--- Splits into pieces of given sizes, as several results; they share memory.
---@param size number|table the size of all (the last may be smaller), or a list of sizes
---@param dim? number the first by default
---@return Tensor ... the parts
---@mark ephemeral
---@error invalid the sizes do not add up to the dimension
function Tensor:split(size, dim) end

--- Stacks this and others of the same shape along a new dimension.
---@param others table|Tensor one tensor or a list
---@param dim? number position of the new dimension, 1 by default
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:stack(others, dim) end

--- Zeros of its shape and type.
---@param options? { dtype: string } its own
---@return Tensor result
---@mark ephemeral
function Tensor:zeros_like(options) end

--- Ones of its shape and type.
---@param options? { dtype: string } its own
---@return Tensor result
---@mark ephemeral
function Tensor:ones_like(options) end

--- One number everywhere, in its shape and type.
---@param value number the number
---@param options? { dtype: string } its own
---@return Tensor result
---@mark ephemeral
function Tensor:full_like(value, options) end

--- Uniform random numbers of its shape and type.
---@param options? { dtype: string } its own
---@return Tensor result
---@mark ephemeral
function Tensor:rand_like(options) end

--- Normal random numbers of its shape and type.
---@param options? { dtype: string } its own
---@return Tensor result
---@mark ephemeral
function Tensor:randn_like(options) end
