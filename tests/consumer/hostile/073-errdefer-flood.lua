-- hundreds of thousands of deferred functions, all of which have to run at the end
-- expect: error
local rille = require "rille"
local n = 0
for i = 1, 400000 do
  rille.errdefer(function() n = n + 1 error("x" .. n) end)
  if i % 20000 == 0 then rille.sleep("1ms") end
end
error("now run them")
