-- fifty fibers that each compute just below the slice, then wait a moment, so that no slice is ever exceeded
-- expect: timeout
local rille = require "rille"
for f = 1, 50 do
  rille.spawn("burn" .. f, function()
    while true do
      for i = 1, 3000000 do end
      rille.sleep("1ms")
    end
  end)
end
rille.sleep("1h")
