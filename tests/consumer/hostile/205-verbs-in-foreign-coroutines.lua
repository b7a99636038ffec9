-- waits inside coroutines that another fiber resumes, so that the wake-up meets the wrong fiber
-- expect: any
local rille = require "rille"
local shared = coroutine.create(function() while true do print(pcall(rille.sleep, "5ms")) coroutine.yield(1) end end)
for i = 1, 20 do
  rille.spawn("r" .. i, function()
    for k = 1, 5 do
      print(i, pcall(coroutine.resume, shared))
      rille.sleep("1ms")
    end
  end)
end
rille.sleep("10ms")
local steps = coroutine.wrap(function() rille.scope("half", function() rille.defer(function() print("deferred") end) coroutine.yield() error("late") end) end)
steps()
rille.spawn("thief", function() print(pcall(steps)) end):wait()
local left = coroutine.wrap(function() rille.step("half", function() coroutine.yield() return 1 end) end)
print(pcall(left))
rille.spawn("thief", function() print(pcall(left)) end):wait()
