-- as many fibers as memory allows, all sleeping for the same far instant: a heap of timers and rows
-- expect: error
local rille = require "rille"
for i = 1, 200000 do
  rille.spawn("t", function() rille.sleep("1000d") end)
  if i % 1000 == 0 then rille.sleep("1ms") end
end
error("all were accepted")
