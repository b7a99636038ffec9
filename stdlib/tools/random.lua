-- Internal: where the random numbers of all devices in use stand, as plain data: what a training must put back.
local native = require "rille.native"
local rille = require "rille"

local random = {}

-- The default device's, and in `devices` those of the others by their names.
function random.state()
  local default = rille.device()
  local out = default:random_state()
  out.device = default.name
  for _, name in ipairs(native.used_devices()) do
    if name ~= default.name then
      out.devices = out.devices or {}
      out.devices[name] = rille.device(name):random_state()
    end
  end
  return out
end

-- The default device goes on where the default one was, whatever it is called here; of the others those that are here.
function random.restore(state)
  local default = rille.device()
  for name, at in pairs(state.devices or {}) do
    local there, device = pcall(rille.device, name)
    if there and device ~= default then device:set_random_state(at) end
  end
  default:set_random_state(state)
end

return random
