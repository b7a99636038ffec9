-- the comparator waits, sorts the same table, raises, spawns fibers and runs steps
-- expect: any
local rille = require "rille"
local t, depth = { 5, 3, 8, 1, 9, 2 }, 0
print(pcall(table.sort, t, function(a, b)
  depth = depth + 1
  if depth < 30 then table.sort(t, function(x, y) return x > y end) end
  rille.sleep("1ms")
  rille.spawn("s", function() t[3] = nil table.sort(t) end)
  rille.step("c", function() return 1 end)
  if depth > 40 then error("enough") end
  return a < b
end))
