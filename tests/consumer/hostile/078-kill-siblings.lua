-- fibers that cancel all others and themselves while these clean up, also inside their steps and sleeps
-- expect: any
local rille = require "rille"
local all = {}
for i = 1, 200 do
  all[i] = rille.spawn("f" .. i, function()
    rille.defer(function() for j = 1, 200 do if all[j] then all[j]:cancel("c") end end pcall(rille.sleep, "1ms") end)
    pcall(rille.step, "s", function() rille.sleep("1ms") for j = 1, #all do all[j]:cancel() end end)
    for j = #all, 1, -1 do all[j]:cancel("again") end
  end)
end
rille.sleep("20ms")
for i = 1, 200 do pcall(all[i].wait, all[i]) end
