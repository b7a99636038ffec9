-- uses a step's context after its end, from other fibers, and from copies of its methods
-- expect: any
local rille = require "rille"
local box = setmetatable({}, { __mode = "v" })
local keep = {}
local co = coroutine.wrap(function() local c = coroutine.yield() while true do c = coroutine.yield(pcall(c.heartbeat, c, 1)) end end)
co()
pcall(rille.step, "s", { retry = 2 }, function(_, ctx) co(ctx) rille.sleep("1ms") error("again") end)
pcall(rille.step, "s", function(_, ctx) rawset(keep, 1, ctx) return 1 end)
print(co(keep[1]))
if keep[1] then
  for k, v in pairs { attempt = 0 / 0, token = "../x", last = print } do pcall(function() keep[1][k] = v end) end
  print(pcall(keep[1].heartbeat, keep[1], 1), pcall(keep[1].heartbeat, {}, 1), pcall(keep[1].heartbeat))
  print(pcall(function() return keep[1].db end), pcall(rille.step, keep[1].token, function() return keep[1].token end))
end
