-- four thousand fibers, each with a clean-up that computes and waits once the run has been ended
-- expect: timeout
local rille = require "rille"
for i = 1, 4000 do
  rille.spawn("f", function()
    rille.defer(function() for k = 1, 300000 do end pcall(rille.sleep, "190ms") end)
    rille.sleep("1h")
  end)
  if i % 200 == 0 then rille.sleep("1ms") end
end
rille.sleep("1h")
