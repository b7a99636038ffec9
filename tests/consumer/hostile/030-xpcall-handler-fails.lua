-- the handler raises in the handler in the handler: error handling of error handling, at the stack's end
-- expect: any
local function handler(e) error(e) end
local function deep(n) return n == 0 and error("x") or (deep(n - 1)) end
local function deeper() return (deeper()) end
print(xpcall(deep, handler, 100))
print(xpcall(deeper, handler))
print(xpcall(deeper, deeper))
print(xpcall(deeper, debug.traceback))
print(pcall(xpcall, deeper, function() return deeper() end))
