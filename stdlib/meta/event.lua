---@meta event
--- An event: a position in the order of a stream or of a device. `stream:record()` and `dev:record()` create it.

---@class Event
---@field device string "cpu", "cuda:0"
local Event = {}

--- Whether all work before it has run. Does not wait.
---@return boolean done
---@mark ephemeral
---@error device the device is lost
---@example
--- print(event:done())
function Event:done() end

--- Waits until all work before it has run. Only the calling fiber waits.
---@mark ephemeral
---@async
---@error state inside a compiled function
---@error device the device is lost, or a kernel failed
---@example
--- event:wait()
function Event:wait() end

--- The time from this event to a later one, on the device's clock (half a microsecond at best); waits for both. On the
--- CPU it is the time between the moments at which execution reached them.
---@param later Event of the same device
---@return number seconds negative, when `later` came first
---@mark ephemeral
---@async
---@error invalid an event of another device
---@error device the device is lost
---@example
--- local seconds = before:elapsed(dev:record())
function Event:elapsed(later) end

return Event
