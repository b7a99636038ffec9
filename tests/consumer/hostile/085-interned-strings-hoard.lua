-- very many short strings, which also grow the string table, kept after each memory error
-- expect: error
local rille = require "rille"
local kept, n = {}, 0
while true do
  pcall(function() for i = 1, 50000 do n = n + 1 kept[n] = "s" .. n end end)
  rille.sleep("1ms")
end
