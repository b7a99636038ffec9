-- Internal: the random state of all devices in use, as plain data, for checkpoints.
local native = require "rille.native"
local rille = require "rille"

local random = {}

-- The default device's state, and in `devices` those of the others by name.
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

-- Bit-equal results also need the same model of device, instruction set and number of threads.
local function compare(device, state)
  if state.made_on and state.made_on ~= device.description then
    print(("%s is '%s', and was '%s': from here on results are equal up to rounding, not bit for bit"):format(
      device.name, device.description, state.made_on))
  end
end

-- The default device continues from the earlier default device, even under another name; other devices are restored if
-- they exist here.
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
