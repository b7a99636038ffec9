-- Internal: dev:check_numbers. Documented in meta/device.lua.
local native = require "rille.native"
local rille = require "rille"

local function settle(dev, before, ok, ...)
  if ok then ok = { pcall(dev.synchronize, dev) } end     -- what is still to be computed is looked at, too
  native.check_numbers(dev, before)
  if not ok then error((...), 0) end
  if not ok[1] then error(ok[2], 0) end
  return ...
end

-- Calls fn and looks at what each operation in it gives.
local function check_numbers(dev, fn, ...)
  if type(fn) ~= "function" and not (getmetatable(fn) or {}).__call then
    rille.error { kind = "invalid", message = "dev:check_numbers: expected a function, got " .. tostring(fn),
      hint = "dev:check_numbers(update, x, y)" }
  end
  local before = native.check_numbers(dev, true)
  return settle(dev, before, xpcall(fn, native.trace, ...))
end

return { check_numbers = check_numbers }
