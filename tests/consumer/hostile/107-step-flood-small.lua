-- as many small steps as possible, from a thousand fibers at a time, of all kinds of effect
-- expect: error
local rille = require "rille"
local effects = { "pure", "once", "idempotent" }
rille.map("m", (function() local l = {} for i = 1, 1000 do l[i] = i end return l end)(), function(i)
  while true do rille.step("s", { effect = effects[i % 3 + 1] }, function() return i end) end
end)
