-- cancelled fibers that swallow each cancellation, and clean-ups that wait for ever
-- expect: error
local rille = require "rille"
for i = 1, 200 do
  local h = rille.spawn("s", function()
    rille.defer(function() while true do pcall(rille.sleep, "1h") end end)
    while true do pcall(rille.sleep, "1h") end
  end)
  rille.sleep("1ms")
  h:cancel("go")
end
rille.sleep("1h")
