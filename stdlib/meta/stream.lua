---@meta stream
--- A stream: a separate order for work of a device, from `dev:stream()`. Kernels on two streams may run in parallel on
--- a GPU. On the CPU everything runs in program order.

---@class Stream
---@field device string "cpu", "cuda:0"
local Stream = {}

--- Records an event after everything launched on the stream so far.
---@return Event event recorded
---@mark ephemeral
---@error state inside a compiled function, or the stream was released
---@error device the device is lost
---@example
--- local e = dev:stream():record()
function Stream:record() end

--- Makes later launches on the stream wait for the event. The script does not wait.
---@param event Event of the same device
---@mark ephemeral
---@error invalid an event of another device
---@error state inside a compiled function, or the stream was released
---@example
--- stream:wait(dev:record())
function Stream:wait(event) end

--- Waits until everything launched on the stream has run. Only the calling fiber waits.
---@mark ephemeral
---@async
---@error state inside a compiled function, or the stream was released
---@error device the device is lost, or a kernel failed
---@example
--- stream:synchronize()
function Stream:synchronize() end

--- Frees the stream, of which a device has 128; the garbage collector does it too. Work launched on it continues, and a
--- bound kernel keeps the stream.
---@mark ephemeral
---@example
--- stream:release()
function Stream:release() end

return Stream
