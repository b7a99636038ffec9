-- spawns in one go as many fibers as are allowed, and their names of the greatest length, without ever waiting
-- expect: error
local rille = require "rille"
local n = 0
while true do n = n + 1 rille.spawn(("x"):rep(185) .. n, function() end) end
