-- pools with odd numbers, pools inside themselves, pools of everything that never give their permits back
-- expect: error
local rille = require "rille"
for _, v in ipairs { 0 / 0, -1, 0, 1 / 0, 2 ^ 63, 1.5, 1e-300 } do
  print(pcall(rille.pool, "p", { slots = v }, function() return 1 end))
  print(pcall(rille.pool, "q", { rate = 1, per = v }, function() return 1 end))
  print(pcall(rille.pool, "r", { rate = v, per = "1ms" }, function() return 1 end))
end
for i = 1, 500 do rille.spawn("h", function() rille.pool("../../x" .. i, { slots = 1 }, function() rille.sleep("1h") end) end) end
rille.pool("self", { slots = 1 }, function() rille.pool("self", { slots = 1 }, function() end) end)
