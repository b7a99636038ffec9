-- rille.map over a list that grows while it runs, with limits that are no numbers and keys of a megabyte
-- expect: error
local rille = require "rille"
print(pcall(rille.map, "m", { 1 }, { limit = 0 / 0 }, function() end))
print(pcall(rille.map, "m", { 1 }, { limit = 1 / 0 }, function() end))
print(pcall(rille.map, "m", { 1 }, { limit = -1 }, function() end))
print(pcall(rille.map, "m", { 1, 2 }, { key = function() return ("k"):rep(1000000) end }, function() end))
print(pcall(rille.map, "m", setmetatable({}, { __len = function() return 1e9 end, __index = function(_, i) return i end }), function() end))
local list = { 1 }
rille.map("grow", list, { limit = 1 }, function(_, i) list[i + 1] = i rille.sleep("1ms") end)
rille.map("key", { 1 }, { key = function() while true do end end }, function() end)
