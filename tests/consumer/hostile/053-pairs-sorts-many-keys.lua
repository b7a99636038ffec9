-- pairs sorts its keys first: very many keys, and only the first is taken, again and again
-- expect: error
local rille = require "rille"
local t = {}
for i = 1, 300000 do t["key" .. (i * 7919) % 1000003] = i if i % 50000 == 0 then rille.sleep("1ms") end end
while true do for k in pairs(t) do break end end
