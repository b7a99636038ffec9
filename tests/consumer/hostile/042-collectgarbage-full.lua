-- a heap of very many small objects, and full collections in a loop: each one is a single C call
-- expect: error
local rille = require "rille"
local kept, n = {}, 0
for part = 1, 10 do
  for i = 1, 60000 do n = n + 1 kept[n] = { i } end
  rille.sleep("1ms")
end
for i = 1, 20 do collectgarbage("collect") end
rille.sleep("1ms")
while true do collectgarbage() end
