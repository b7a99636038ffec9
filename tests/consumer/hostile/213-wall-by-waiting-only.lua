-- never computes: waits, catches each error, and waits again, so that only the wall clock can end it
-- expect: timeout
local rille = require "rille"
while true do
  pcall(rille.race, { function() rille.sleep("1h") end, function() rille.signal("never") end })
  pcall(rille.sleep, "1h")
end
