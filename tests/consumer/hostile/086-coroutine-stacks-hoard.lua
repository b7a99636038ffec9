-- suspended coroutines whose stacks have grown to the greatest size
-- expect: error
local rille = require "rille"
local function grow(n) if n == 0 then coroutine.yield() return 0 end return 1 + grow(n - 1) end
local kept = {}
while true do
  local c = coroutine.create(grow)
  coroutine.resume(c, 6000)
  kept[#kept + 1] = c
  if #kept % 50 == 0 then rille.sleep("1ms") end
end
