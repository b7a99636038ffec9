-- thousands of nested coroutines, and a durable wait at the very bottom that must suspend them all
-- expect: any
local rille = require "rille"
local function down(n)
  if n == 0 then rille.sleep("1ms") return "bottom" end
  return coroutine.wrap(down)(n - 1)
end
for _, n in ipairs { 10, 100, 150, 190, 1000, 20000 } do print(n, pcall(down, n)) end
