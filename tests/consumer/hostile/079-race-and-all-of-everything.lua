-- races and alls over handles that appear in each other, the same handle a thousand times, and odd keys
-- expect: any
local rille = require "rille"
local h = rille.spawn("h", function() rille.sleep("50ms") return 1 end)
local list = {}
for i = 1, 1000 do list[i] = h end
print(pcall(rille.all, list))
print(pcall(rille.race, list))
print(pcall(rille.all, { [0.5] = h, [-1] = h, [true] = h, [2 ^ 53] = h, ["a\0b"] = h }))
print(pcall(rille.all, setmetatable({}, { __index = function() return h end, __len = function() return 1e9 end })))
local function again(n) return rille.race { function() return again(n + 1) end, function() return again(n + 1) end } end
again(0)
