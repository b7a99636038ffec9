-- tables that are rehashed at a million entries in one instruction: the turn waits for the move
-- expect: error
local rille = require "rille"
while true do
  local t = {}
  for i = 1, 1048577 do
    t[i * 3.5] = i
    if i % 200000 == 0 then rille.sleep("1ms") end
  end
end
