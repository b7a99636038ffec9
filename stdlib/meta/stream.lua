---@meta stream
--- A stream: an order of its own among a device's work, as `dev:stream()` gives it. Kernels that are launched on two
--- streams may run side by side on a GPU. On the CPU all of it runs in the order of the program.

---@class Stream
---@field device string "cpu", "cuda:0"
local Stream = {}

--- An event behind all that was launched on the stream so far.
---@return Event event recorded
---@mark ephemeral
---@error state inside a compiled function, or the stream was released
---@error device the device is lost
---@example
--- local e = dev:stream():record()
function Stream:record() end

--- What is launched on the stream from here on comes after the event. The script does not wait.
---@param event Event of the same device
---@mark ephemeral
---@error invalid an event of another device
---@error state inside a compiled function, or the stream was released
---@example
--- stream:wait(dev:record())
function Stream:wait(event) end

--- Waits until all that was launched on the stream has run. Only the calling fiber waits.
---@mark ephemeral
---@async
---@error state inside a compiled function, or the stream was released
---@error device the device is lost, or a kernel did wrong
---@example
--- stream:synchronize()
function Stream:synchronize() end

--- Gives the stream back, of which a device has 128; the collector does it, too. What was launched on it goes on, and a
--- bound kernel keeps it.
---@mark ephemeral
---@example
--- stream:release()
function Stream:release() end

return Stream
