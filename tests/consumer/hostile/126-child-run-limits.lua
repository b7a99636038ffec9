-- a child that burns and swallows its limits while the parent burns too, and outlives its cancellation
-- expect: error
local rille = require "rille"
local args = rille.args { child = 0 }
if args.child > 0 then
  rille.defer(function() while true do pcall(rille.sleep, "1h") end end)
  while true do pcall(function() for i = 1, 2000000 do end rille.sleep("1ms") end) end
end
for i = 1, 10 do rille.spawn("c", function() rille.run("126-child-run-limits.lua", { child = i }) end) end
rille.sleep("50ms")
while true do pcall(function() while true do end end) end
