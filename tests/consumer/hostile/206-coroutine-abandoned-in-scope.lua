-- leaves scopes, steps, pools and races by coroutines that are never resumed again, and collects them
-- expect: any
local rille = require "rille"
for i = 1, 300 do
  local c = coroutine.wrap(function()
    return rille.scope("s", function()
      rille.defer(function() print("deferred", i) end)
      return rille.pool("p", { slots = 1000 }, function()
        rille.spawn("child", function() rille.sleep("1h") end)
        return rille.step("x", { retry = 3 }, function() coroutine.yield() return 1 end)
      end)
    end)
  end)
  pcall(c)
  c = nil
  if i % 50 == 0 then collectgarbage() rille.sleep("1ms") end
end
return rille.step("after", function() return "still in order" end)
