-- clean-up that opens scopes, spawns, maps, races and runs steps while the run unwinds
-- expect: error
local rille = require "rille"
rille.defer(function()
  for i = 1, 1e9 do
    pcall(rille.scope, function()
      rille.defer(function() rille.spawn("late", function() rille.sleep("1h") end) end)
      rille.step("late", function() return i end)
      rille.map("m", { 1, 2, 3 }, function() rille.sleep("1ms") end)
      rille.race { function() rille.sleep("1h") end, function() return 1 end }
    end)
  end
end)
error("unwind")
