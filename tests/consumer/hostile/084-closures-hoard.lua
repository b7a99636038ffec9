-- closures with their own upvalues, each in a coroutine that is suspended
-- expect: error
local rille = require "rille"
local kept, n = {}, 0
while true do
  n = n + 1
  local a, b, c = n, n, n
  kept[n] = coroutine.wrap(function() coroutine.yield(function() a = a + b + c return a end) end)
  kept[n]()
  if n % 20000 == 0 then rille.sleep("1ms") end
end
