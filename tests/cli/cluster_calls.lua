-- What clusters do where calls run; scale_test.py runs it, since the runner of tests/lua has no agents.
local rille = require "rille"
local tap = require "tap"

local function names(cluster) return tap.names(cluster:boxes()) end

tap.test("who has ended because it was idle is no member any more; bounds replace it, and work goes on", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu", idle_after = "1s", idle_below = 1 })
  local old = gang:boxes()
  while old[1].state == "live" or old[2].state == "live" do rille.sleep("10ms") end
  tap.equal(gang.count, 2)                      -- the end has not been noticed yet
  gang._options = { gpu = "cpu" }
  rille.autoscale(gang, { metric = function() return nil end, min = 2, max = 2, interval = "10ms" })
  tap.equal(gang:map("square", { 2, 3 }, function(box, n)
    return box:call("square", { args = n }, function(k) return k * k end)
  end), { 4, 9 })
  while gang.count < 2 do rille.sleep("1ms") end
  tap.equal(names(gang), { "gang-3", "gang-4" })
end)

tap.test("what ends as soon as it is there is not rented again before the cool-down", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu" })
  rille.autoscale(gang, { metric = function() return nil end, min = 2, max = 2, interval = "5ms",
    cooldown_out = "500ms" })
  gang:boxes()[1]:release()
  while gang.count > 1 do rille.sleep("1ms") end
  local begin = rille.now()
  while gang.count < 2 do rille.sleep("1ms") end
  tap.ok(rille.now() - begin > 0.4, rille.now() - begin)
end)

-- Programs that run on these instances until the file `name` is there: their handles, once all have begun.
local function long_calls(name, boxes)
  local handles = {}
  for i, box in ipairs(boxes) do
    local begun = rille.home .. "/" .. name .. i
    handles[i] = rille.spawn(name .. i, function()
      return box:exec(name, { argv = { "sh", "-c", ("touch %s; while [ ! -e %s ]; do sleep 0.02; done"):format(begun,
        rille.home .. "/" .. name) } })
    end)
    while not rille.step("begun", function() return io.open(begun) ~= nil end) do rille.sleep("2ms") end
  end
  return handles
end

local function end_calls(name, handles)
  rille.step("end them", function() io.open(rille.home .. "/" .. name, "w"):close() end)
  for _, handle in ipairs(handles) do tap.equal(handle:wait().code, 0) end
end

tap.test("an autoscaler takes no instance on which the script calls", function()
  local gang = rille.cluster("gang", { count = 4, gpu = "cpu" })
  local boxes, looks = gang:boxes(), 0
  local calls = long_calls("spared", { boxes[3], boxes[4] })
  rille.autoscale(gang, { metric = function() looks = looks + 1 return 0 end, max = 4, interval = "5ms",
    cooldown_in = 0, cooldown_out = 0 })
  while gang.count > 2 do rille.sleep("1ms") end
  tap.equal(names(gang), { "gang-3", "gang-4" })
  local seen = looks
  while looks < seen + 5 do rille.sleep("1ms") end
  tap.equal(gang.count, 2)
  end_calls("spared", calls)
  while gang.count > 1 do rille.sleep("1ms") end  -- whichever's call has ended
end)

tap.test("an instance that has both an item and a call stays after the item", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  gang:resize(2)
  local calls = long_calls("both", { gang:boxes()[2] })
  local marked = false
  gang:map("item", { 1, 2 }, function(_, item)
    if item == 2 then
      rille.autoscale(gang, { metric = function() return 0 end, max = 2, interval = "1h" })
      while gang.count > 1 do rille.sleep("1ms") end
      marked = true
    end
    while not marked do rille.sleep("1ms") end
  end)
  tap.equal(names(gang), { "gang-1", "gang-2" })
  end_calls("both", calls)
end)

tap.test("by hand, an instance on which the script calls goes last", function()
  local gang = rille.cluster("gang", { count = 3, gpu = "cpu" })
  local calls = long_calls("last", { gang:boxes()[3] })
  gang:resize(1)
  tap.equal(names(gang), { "gang-3" })
  end_calls("last", calls)
end)

tap.done()
