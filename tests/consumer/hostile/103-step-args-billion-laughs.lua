-- the args of a step are doubled references: hashing them would take for ever
-- expect: error
local rille = require "rille"
local t = ("x"):rep(1000000)
for i = 1, 22 do t = { t, t } end
rille.step("s", { args = t }, function() return 1 end)
return "recorded"
