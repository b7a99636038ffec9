-- many gsub callbacks that stay below the slice, but hold the host's turn much longer than 20 ms each
-- expect: any
local rille = require "rille"
for round = 1, 8 do
  ("x"):gsub(".", function() for i = 1, 25000000 do end end)
  rille.sleep("1ms")
end
return "ended"
