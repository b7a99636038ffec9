-- results that contain themselves, that are too deep, and that have every kind of key
-- expect: error
local rille = require "rille"
local t = {}
t.t = t
local deep = {}
for i = 1, 100000 do deep = { deep } end
print(pcall(rille.step, "a", function() return t end), pcall(rille.step, "b", function() return deep end))
print(pcall(rille.step, "c", function() return { [0 / 1] = 1, [-0.0] = 2, [true] = 3, [2 ^ 53 + 2] = 4, ["$num"] = "nan", ["$"] = 1 } end))
print(pcall(rille.step, "d", function() return { ["$bytes"] = "not base64", ["$map"] = { { 1 } }, ["$$"] = {} } end))
print(pcall(rille.step, "e", function() return { [1] = 1, [2 ^ 31] = 2, [1e15] = 3 } end))
return { t, deep, print }
