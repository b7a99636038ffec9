-- finalizers by every way: tables with __gc, weak tables of suspended coroutines, errors and loops inside them
-- expect: any
local rille = require "rille"
local function spin() while true do end end
for i = 1, 1000 do
  setmetatable({}, { __gc = spin, __mode = "k", __close = spin })
  local c = coroutine.create(function() pcall(coroutine.yield) while true do end end)
  coroutine.resume(c)
  pcall(function() setmetatable(rille.device("cpu"):ones { 1 }, { __gc = spin }) end)
  pcall(function() getmetatable(newproxy(true)).__gc = spin end)
end
collectgarbage()
collectgarbage()
