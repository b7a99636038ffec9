-- rille.args with cyclic, deep, huge and doubled defaults, and called without end
-- expect: error
local rille = require "rille"
local t = {}
t.t = t
local d = { 1 }
for i = 1, 40 do d = { d, d } end
print(pcall(rille.args, t), pcall(rille.args, { a = t }), pcall(rille.args, { a = d }), pcall(rille.args, { a = print }))
print(pcall(rille.args, setmetatable({}, { __index = function() while true do end end })))
print(pcall(rille.args, 1), pcall(rille.args, { ["../x"] = 1, ["\0"] = "" }))
while true do rille.args { a = 1 } end
