-- the body captures tables of doubled references, which are compared before and after
-- expect: any
local rille = require "rille"
local t = { 1 }
for i = 1, 58 do t = { t, t, a = t, b = t } end
local wide = {}
for i = 1, 400 do wide[i] = {} for k = 1, 240 do wide[i][k] = k end end
for i = 1, 1000 do pcall(rille.step, "s", function() return (t and wide) and 1 end) end
