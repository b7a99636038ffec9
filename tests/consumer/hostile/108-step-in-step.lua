-- durable verbs inside a step's body, directly, from coroutines, from spawned fibers and through saved functions
-- expect: any
local rille = require "rille"
local verbs = { rille.step, rille.spawn, rille.defer, rille.scope, rille.map, rille.all, rille.race, rille.rent, rille.run, rille.signal,
  rille.pool, rille.patched, rille.offers, rille.budget, rille.errdefer, rille.cluster }
for i = 1, #verbs do
  local f = verbs[i]
  print(i, pcall(rille.step, "outer", function() return tostring(select(2, pcall(f, "inner", function() return 1 end))) end))
  print(i, pcall(rille.step, "outer", function() return tostring(coroutine.wrap(function() return f("inner", function() end) end)()) end))
end
