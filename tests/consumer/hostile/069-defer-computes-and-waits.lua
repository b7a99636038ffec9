-- after the limit the clean-up computes almost a slice and waits almost its time, in turns: the sum is too long
-- expect: timeout
local rille = require "rille"
for d = 1, 20 do
  rille.defer(function()
    for i = 1, 15000000 do end
    pcall(rille.sleep, "150ms")
    while true do pcall(function() for i = 1, 100000 do end end) end
  end)
end
while true do rille.sleep("10ms") end
