-- fibers that wait for each other, so that the run would never end by itself
-- expect: error
local rille = require "rille"
local a, b
a = rille.spawn("a", function() rille.sleep("1ms") return b:wait() end)
b = rille.spawn("b", function() rille.sleep("1ms") return a:wait() end)
return a:wait()
