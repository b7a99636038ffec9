-- Internal: dev:check_numbers, and the same for all devices in use. Documented in meta/device.lua.
local native = require "rille.native"
local rille = require "rille"

-- Ends the check. watched: { { device, whether the device was checked before }, .. }
local function settle(watched, ok, ...)
  local failed
  for _, one in ipairs(watched) do
    if ok and not failed then                              -- operations that have not run yet are checked too
      local done, err = pcall(one[1].synchronize, one[1])
      failed = not done and { err } or nil
    end
    native.check_numbers(one[1], one[2])
  end
  if not ok then error((...), 0) end
  if failed then error(failed[1], 0) end
  return ...
end

local function watch(devices, fn, ...)
  local watched = {}
  for i, device in ipairs(devices) do watched[i] = { device, native.check_numbers(device, true) } end
  return settle(watched, xpcall(fn, native.trace, ...))
end

-- Calls fn and checks the result of each operation that fn runs on this device.
local function check_numbers(dev, fn, ...)
  if type(fn) ~= "function" and not (getmetatable(fn) or {}).__call then
    rille.error { kind = "invalid", message = "dev:check_numbers: expected a function, got " .. tostring(fn),
      hint = "dev:check_numbers(update, x, y)" }
  end
  return watch({ dev }, fn, ...)
end

-- Checks fn's operations on every device in use: a training may run on any of them, or on several.
local function everywhere(fn, ...)
  local devices = {}
  for i, name in ipairs(native.used_devices()) do devices[i] = rille.device(name) end
  return watch(devices, fn, ...)
end

return { check_numbers = check_numbers, everywhere = everywhere }
