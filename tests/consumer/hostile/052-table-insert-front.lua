-- inserts at the front of a million entries: each call shifts them all in C
-- expect: error
local rille = require "rille"
local t = {}
for i = 1, 1000000 do t[i] = i if i % 250000 == 0 then rille.sleep("1ms") end end
while true do
  table.insert(t, 1, 0)
  table.remove(t, 1)
end
