-- lifts the device's memory limit, which a host may have set, and allocates
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
for _, v in ipairs { 0, 2 ^ 60, "1000TB", 0 / 0, 1 / 0, 2 ^ 64 } do pcall(dev.limit_memory, dev, v) end
local kept = {}
for i = 1, 60 do kept[i] = dev:ones { 2500000 } kept[i]:narrow(1, 1, 1):item() end
return "ESCAPED: 600 MB were given"
