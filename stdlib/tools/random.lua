-- Internal: the random states of all devices in use, as plain data, for checkpoints.
local native = require "rille.native"
local rille = require "rille"

local random = {}

-- Returns the default device's random state; its field `devices` has the states of other devices in use, by name.
function random.state()
  local default = rille.device()
  local out = default:random_state()
  out.device, out.made_on = default.name, default.description
  for _, name in ipairs(native.used_devices()) do
    if name ~= default.name then
      out.devices = out.devices or {}
      local other = rille.device(name)
      out.devices[name] = other:random_state()
      out.devices[name].made_on = other.description
    end
  end
  return out
end

-- Warns if the device differs: bit-equal results need the same device model, instruction set and number of threads.
local function compare(device, state)
  if state.made_on and state.made_on ~= device.description then
    print(("%s is '%s', and was '%s': from here on results are equal up to rounding, not bit for bit"):format(
      device.name, device.description, state.made_on))
  end
end

-- Restores random states. The default device gets the state of the earlier default device, even if its name differs;
-- the states of other devices are restored if this machine has the device.
function random.restore(state)
  local default = rille.device()
  for name, at in pairs(state.devices or {}) do
    local there, device = pcall(rille.device, name)
    if there and device ~= default then
      compare(device, at)
      device:set_random_state(at)
    end
  end
  compare(default, state)
  default:set_random_state(state)
end

return random
