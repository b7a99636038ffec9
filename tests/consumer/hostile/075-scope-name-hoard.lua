-- scopes with megabyte names, all held open by fibers
-- expect: any
local rille = require "rille"
local name = ("n"):rep(1000000)
for i = 1, 2000 do
  rille.spawn("f", function() rille.scope(name, function() rille.sleep("1h") end) end)
  if i % 50 == 0 then rille.sleep("1ms") end
end
