-- step results of control characters: each becomes six bytes, is hashed, stored, and decoded again
-- expect: any
local rille = require "rille"
for i = 1, 50 do pcall(rille.step, "big", function() return ("\1"):rep(10000000) end) end
