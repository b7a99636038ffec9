-- Fibers in all forms, scopes and defers, messages; killed with several fibers under way.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local order = {}
local function work(name, value)
  local v = rille.step(name, function() return value end)
  order[#order + 1] = name
  return v
end
local doubled = rille.map("items", { 1, 2, 3, 4 }, { limit = 2, key = function(x) return "k" .. x end }, function(x)
  return work("double" .. x, 2 * x)
end)
local winner, key = rille.race {
  quick = function() return work("quick", "q") end,
  slow = function() rille.sleep("long", "1h") end,
}
local both = rille.all { a = function() return work("a", 1) end, b = function() return work("b", 2) end }
local handle = rille.spawn("background", function() return work("behind", "b") end)
rille.scope("inner", function()
  rille.defer(function() work("deferred", 0) end)
  work("inside", 0)
end)
local message = rille.signal("go", { timeout = "10s" })
local caught = select(2, pcall(rille.scope, function()
  rille.spawn("bad", function() work("before", 0) error("broken child") end)
  rille.sleep("never", "1h")
end))
local ends = {}
rille.map("last", { 1, 2 }, function(i)
  ends[i] = work("first" .. i, i)
  if i == 1 then rille.step("die", function() die() end) end
  ends[i] = ends[i] + work("second" .. i, i)
end)
local why = tostring(caught.message):match("broken child")
return { doubled, winner, key, both, handle:wait(), message, why, ends, #order }
