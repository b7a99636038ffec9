---@meta buffer
--- A buffer: memory of the program that runs the script, which the script shares without a copy. A host program passes
--- it (`rille_buffer_wrap` in rille.h). `#buffer` is its size in bytes.

---@class Buffer
local Buffer = {}

--- The bytes as a string, which is a copy. Positions count from 1, or backwards from -1, as in `string.sub`.
---@param first integer? 1 if left out
---@param last integer? -1 if left out
---@return string bytes
---@mark ephemeral
---@example
--- local head = buffer:text(1, 4)
function Buffer:text(first, last) end

--- A tensor of the CPU in the buffer's memory, without a copy. Operations in place write to the buffer when a value of
--- the tensor is read.
---@param dtype string such as "f32"
---@param shape integer[]? by default one dimension with as many elements as fit
---@return Tensor view
---@mark ephemeral
---@error invalid the tensor is larger than the buffer
---@error state the memory does not begin at a multiple of the element's size
---@example
--- local pixels = buffer:tensor("u8", { 480, 640, 3 })
function Buffer:tensor(dtype, shape) end

return Buffer
