-- What clusters do where calls run; scale_test.py runs it, since the runner of tests/lua has no agents.
local rille = require "rille"
local tap = require "tap"

local function names(cluster)
  local out = {}
  for i, box in ipairs(cluster:boxes()) do out[i] = box.name end
  return out
end

tap.test("who has ended because it was idle is no member any more; bounds replace it, and work goes on", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu", idle_after = "1s", idle_below = 1 })
  local old = gang:boxes()
  while old[1].state == "live" or old[2].state == "live" do rille.sleep("10ms") end
  tap.equal(gang.count, 2)                      -- nobody has looked yet
  gang._options = { gpu = "cpu" }
  rille.autoscale(gang, { metric = function() return nil end, min = 2, max = 2, interval = "10ms" })
  tap.equal(gang:map("square", { 2, 3 }, function(box, n)
    return box:call("square", { args = n }, function(k) return k * k end)
  end), { 4, 9 })
  while gang.count < 2 do rille.sleep("1ms") end
  tap.equal(names(gang), { "gang-3", "gang-4" })
end)

tap.done()
