-- run: durable
local rille = require "rille"
local tap = require "tap"

local function names(cluster) return tap.names(cluster:boxes()) end

tap.test("a cluster rents its instances at once, each set up, and they end with its scope", function()
  local kept, set_up = nil, {}
  rille.scope(function()
    local gang = rille.cluster("gang", { count = 3, gpu = "cpu", setup = function(box, n) set_up[n] = box.name end })
    tap.equal({ gang.count, gang.busy, gang.waiting, gang.name }, { 3, 0, 0, "gang" })
    tap.equal(names(gang), { "gang-1", "gang-2", "gang-3" })
    tap.equal(set_up, { "gang-1", "gang-2", "gang-3" })
    tap.equal(tostring(gang), "Cluster 'gang' (3 instances)")
    kept = gang:boxes()
    tap.equal(kept[2].state, "live")
    tap.raises("invalid", "it has: map", function() return gang.size end)
  end)
  for _, box in ipairs(kept) do tap.equal(box.state, "released") end
end)

tap.test("when one cannot be had, none is kept", function()
  tap.raises("invalid", "did you mean ttl", rille.cluster, "gang", { count = 2, gpu = "cpu", ttll = 1 })
  tap.raises("capacity", "has nothing", rille.cluster, "gang", { count = 2, gpu = "B300:64", provider = "local" })
end)

tap.test("map gives each item to an instance that is free, and keeps the order of the results", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu" })
  local working, most = {}, 0
  local out = gang:map("item", { 1, 2, 3, 4, 5 }, function(box, item, index)
    tap.ok(not working[box.name], "two items on " .. box.name)
    working[box.name] = true
    most = math.max(most, gang.busy)
    rille.sleep(("%dms"):format(6 - item))
    working[box.name] = nil
    return item * 10 + index
  end)
  tap.equal(out, { 11, 22, 33, 44, 55 })
  tap.equal({ most, gang.busy, gang.waiting }, { 2, 0, 0 })
  tap.equal(gang:map("pair", { "a", "b", "c", "d" }, { per_instance = 2, key = function(item) return item end },
    function(box, item) return box.name .. item end), { "gang-1a", "gang-1b", "gang-2c", "gang-2d" })
  tap.equal(gang:map("none", {}, print), {})
  tap.raises("invalid", "did you mean 'key'", gang.map, gang, "x", {}, { kye = 1 }, print)
  tap.raises("invalid", "expected its name first", gang.map, gang, {}, print)
end)

tap.test("two maps share the instances", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu" })
  local function work(box, item) rille.sleep("2ms") return item end
  local both = rille.all {
    a = function() return gang:map("a", { 1, 2, 3, 4 }, work) end,
    b = function() return gang:map("b", { 5, 6, 7, 8 }, work) end,
    c = function() return gang:each("c", function(box) return box.name end) end,
  }
  tap.equal(both, { a = { 1, 2, 3, 4 }, b = { 5, 6, 7, 8 }, c = { "gang-1", "gang-2" } })
  tap.equal({ gang.busy, gang.waiting }, { 0, 0 })
end)

tap.test("the first error of an item ends the others, and the cluster can be used again", function()
  local gang = rille.cluster("gang", { count = 2, gpu = "cpu" })
  local ended = 0
  tap.raises("io", "on purpose", gang.map, gang, "item", { 1, 2, 3 }, function(_, item)
    rille.defer(function() ended = ended + 1 end)
    if item == 2 then rille.error { kind = "io", message = "on purpose" } end
    rille.sleep("1h")
  end)
  tap.equal({ ended, gang.busy, gang.waiting, gang.count }, { 2, 0, 0, 2 })
  tap.equal(gang:each("name", function(box, i) return i .. box.name end), { "1gang-1", "2gang-2" })
end)

tap.test("resize rents more and releases the newest; one that works ends its item first", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  gang:resize(3)
  tap.equal(names(gang), { "gang-1", "gang-2", "gang-3" })
  local third = gang:boxes()[3]
  gang:resize(2)
  tap.equal({ names(gang)[1], names(gang)[2], gang.count, third.state }, { "gang-1", "gang-2", 2, "released" })
  local second, states = gang:boxes()[2], {}
  local out = gang:map("item", { 1, 2, 3 }, function(box, item)
    if item == 2 then
      gang:resize(1)                      -- both work: the newer one leaves, after this
      states[1] = second.state
    else
      while gang.count > 1 do rille.sleep("1ms") end
    end
    return box.name
  end)
  tap.equal(out, { "gang-1", "gang-2", "gang-1" })
  tap.equal({ states[1], second.state, gang.count }, { "live", "released", 1 })
  gang:resize(2)
  tap.equal(names(gang), { "gang-1", "gang-4" })
  for _, count in ipairs { 0, 1.5, "2" } do tap.raises("invalid", "whole number from 1", gang.resize, gang, count) end
  gang:release()
  tap.equal({ gang.count, gang.released }, { 0, true })
  tap.raises("state", "is released", gang.resize, gang, 1)
  tap.raises("state", "no instance left", gang.map, gang, "item", { 1 }, print)
end)

tap.test("what joins in another fiber stays with the cluster's scope", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  rille.spawn("grows", function() gang:resize(2) end):wait()
  tap.equal({ gang.count, gang:boxes()[2].state }, { 2, "live" })
end)

tap.test("when a setup fails, joined members stay and the others are released", function()
  local gang, fails, seen = nil, true, {}
  local function setup(box, n)
    seen[n] = box
    if n == 3 and fails then
      while gang.count < 2 do rille.sleep("1ms") end
      rille.error { kind = "io", message = "on purpose" }
    elseif n == 4 and fails then
      rille.sleep("1h")
    end
  end
  gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = setup })
  tap.raises("io", "on purpose", gang.resize, gang, 4)
  tap.equal({ names(gang)[1], names(gang)[2], gang.count }, { "gang-1", "gang-2", 2 })
  tap.equal({ seen[2].state, seen[3].state }, { "live", "released" })
  if seen[4] then tap.equal(seen[4].state, "released") end
  tap.equal(gang:each("name", function(box) return box.name end), { "gang-1", "gang-2" })
  fails = false
  gang:resize(3)
  tap.equal(names(gang), { "gang-1", "gang-2", "gang-5" })
  gang:release()
  for _, box in pairs(seen) do tap.equal(box.state, "released") end
end)

tap.test("a release during growth leaves nothing alive", function()
  local gang, seen, grown = nil, {}, nil
  local function setup(box, n)
    seen[n] = box
    while n == 2 and not gang.released do rille.sleep("1ms") end
  end
  gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = setup })
  local grows = rille.spawn("grows", function() grown = { pcall(gang.resize, gang, 3) } end)
  while gang.count < 2 do rille.sleep("1ms") end
  tap.equal(names(gang), { "gang-1", "gang-3" })
  gang:release()
  grows:wait()
  tap.equal({ grown[1], grown[2].kind, gang.count, #seen }, { false, "state", 0, 3 })
  for _, box in ipairs(seen) do tap.equal(box.state, "released") end
end)

tap.test("an autoscaler that is cancelled during growth leaves no instance outside the cluster", function()
  local gang, seen = nil, {}
  local function setup(box, n)
    seen[n] = box
    if n == 3 then rille.sleep("1h") end
  end
  gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = setup })
  local scaler = rille.autoscale(gang, { metric = function() return 1 end, max = 3, step = 2, interval = "1ms",
    cooldown_out = 0 })
  while gang.count < 2 or not seen[3] do rille.sleep("1ms") end
  scaler:cancel("enough")
  pcall(scaler.wait, scaler)
  tap.equal({ gang.count, seen[2].state, seen[3].state }, { 2, "live", "released" })
  gang:release()
  tap.equal({ seen[1].state, seen[2].state }, { "released", "released" })
end)

tap.test("two resizes at once rent no more than the larger, and the last one counts", function()
  local gang, seen, go = nil, {}, false
  local function setup(box, n)
    seen[n] = box
    while n > 1 and not go do rille.sleep("1ms") end
  end
  gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = setup })
  rille.all { function() gang:resize(3) end, function() gang:resize(4) end, function() go = true end }
  tap.equal({ gang.count, #seen }, { 4, 4 })
  go, seen = false, {}
  rille.all {
    function() gang:resize(6) end,
    function()
      while not (seen[5] and seen[6]) do rille.sleep("1ms") end
      gang:resize(2)                            -- the two that come are refused, and two of the four go
      gang:resize(3)                            -- one of the two is wanted after all
      go = true
    end,
  }
  tap.equal({ gang.count, #names(gang) }, { 3, 3 })
  tap.equal({ (seen[5].state == "live") ~= (seen[6].state == "live"), seen[7] == nil }, { true, true })
  gang._options = { gpu = "B300:64", provider = "local" }
  tap.raises("capacity", "has nothing", gang.resize, gang, 5)
  gang._options = { gpu = "cpu" }
  gang:resize(4)                                -- what could not be had no longer counts
  tap.equal(gang.count, 4)
end)

tap.test("what joins gets work before the others are there", function()
  local gang, worked
  local function setup(_, n)
    while n == 3 and not worked do rille.sleep("1ms") end
  end
  gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = setup })
  local grows = rille.spawn("grows", function() gang:resize(3) end)
  gang:map("item", { 1, 2 }, function(box, item)
    if item == 2 then worked = box.name end
    while not worked do rille.sleep("1ms") end
  end)
  grows:wait()
  tap.equal({ worked, gang.count }, { "gang-2", 3 })
end)

tap.test("an autoscaler follows the queue, up and down again; what joins gets work at once", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  local most = 0
  local scaler = rille.autoscale(gang, { metric = "queue", above = 0.5, below = 0.1, max = 3, interval = "5ms",
    cooldown_out = 0, cooldown_in = 0 })
  local out = gang:map("item", { 1, 2, 3, 4, 5, 6, 7, 8 }, function(_, item)
    while item <= 3 and most < 3 do     -- the first three end only when all three work
      most = math.max(most, gang.busy)
      rille.sleep("1ms")
    end
    return item
  end)
  tap.equal({ #out, most }, { 8, 3 })
  while gang.count > 1 do rille.sleep("1ms") end
  tap.equal({ names(gang)[1], scaler:done() }, { "gang-1", false })
end)

tap.test("an autoscaler ends with the body of its scope, and with its cluster", function()
  local outer, scaler
  rille.scope(function()
    outer = rille.cluster("outer", { count = 1, gpu = "cpu" })
    scaler = rille.autoscale(outer, { metric = function() return nil end, max = 2 })
  end)
  tap.ok(scaler:done())
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  local other = rille.autoscale(gang, { metric = function() return 1 end, max = 2, interval = "1h" })
  while gang.count < 2 do rille.sleep("1ms") end
  gang:release()
  pcall(other.wait, other)
  tap.ok(other:done())
end)

tap.test("an item whose instance is over begins again on another; its own fault does not", function()
  local gang = rille.cluster("gang", { count = 3, gpu = "cpu" })
  local tries = {}
  tap.equal(gang:map("item", { 1 }, function(box)
    tries[#tries + 1] = box.name
    if #tries == 1 then
      box:release()
      box:exec("x", { argv = { "true" } })
    end
    return box.name
  end), { "gang-2" })
  tap.equal({ tries, names(gang) }, { { "gang-1", "gang-2" }, { "gang-2", "gang-3" } })
  tap.raises("invalid", "on purpose", gang.map, gang, "own", { 1 }, function(box)
    box:release()
    rille.error { kind = "invalid", message = "on purpose" }
  end)
  tap.equal(gang:each("name", function(box) return box.name end), { "gang-3" })
  tap.raises("state", "no instance left", gang.map, gang, "last", { 1 }, function(box)
    box:release()
    box:exec("x", { argv = { "true" } })
  end)
  tap.raises("state", "no instance left", gang.each, gang, "none", print)
  tap.equal(gang.count, 0)
end)

-- A cluster whose second and later instances fail their setup as long as `bad` says so.
local function with_bad_setup(bad)
  local numbers, seen = {}, {}
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu", setup = function(box, n)
    numbers[#numbers + 1], seen[#seen + 1] = n, box
    if bad(n) then rille.error { kind = "io", message = "on purpose" } end
  end })
  return gang, numbers, seen
end

tap.test("a setup that fails costs its machine, and does not end the run", function()
  local gang, numbers, seen = with_bad_setup(function(n) return n == 2 or n == 3 or n == 5 end)
  rille.autoscale(gang, { metric = function() return 1 end, max = 3, interval = "1ms", cooldown_out = 0 })
  gang:map("item", { 1 }, function(_) while gang.count < 3 do rille.sleep("1ms") end end)
  tap.equal({ numbers, names(gang) }, { { 1, 2, 3, 4, 5, 6 }, { "gang-1", "gang-4", "gang-6" } })
  for i, state in ipairs { "live", "released", "released", "live", "released", "live" } do
    tap.equal(seen[i].state, state)
  end
end)

tap.test("the third setup in a row that fails ends the scope with its error", function()
  local numbers, seen
  tap.raises("io", "on purpose", rille.scope, "scaled", function()
    local gang
    gang, numbers, seen = with_bad_setup(function(n) return n > 1 end)
    rille.autoscale(gang, { metric = function() return 1 end, max = 3, interval = "1ms", cooldown_out = 0 })
    rille.sleep("1h")
  end)
  tap.equal(numbers, { 1, 2, 3, 4 })
  for _, box in ipairs(seen) do tap.equal(box.state, "released") end
end)

tap.test("what cannot be rented is tried again, and does not end the run", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  gang._options = { gpu = "B300:64", provider = "local" }
  local looks = 0
  local scaler = rille.autoscale(gang, { metric = function() looks = looks + 1 return 1 end, max = 2, interval = "1ms",
    cooldown_out = 0 })
  while looks < 4 do rille.sleep("1ms") end
  tap.equal(gang.count, 1)
  scaler:cancel("seen enough")  -- what it is about to rent would count as wanted below
  pcall(scaler.wait, scaler)
  tap.raises("capacity", "has nothing", gang.resize, gang, 2)
end)

tap.test("a policy that cannot be meant is refused", function()
  local gang = rille.cluster("gang", { count = 1, gpu = "cpu" })
  local function refused(text, options) tap.raises("invalid", text, rille.autoscale, gang, options) end
  refused("max is missing", {})
  refused("did you mean 'above'", { abvoe = 1, max = 2 })
  refused("below = 0.9 is not less", { above = 0.8, below = 0.9, max = 2 })
  refused("target cannot be combined with", { target = 0.5, above = 0.8, max = 2 })
  refused("min = 3 is more than max = 2", { min = 3, max = 2 })
  refused("metric = memory is not known", { metric = "memory", max = 2 })
  refused("cooldown_in", { cooldown_in = "soon", max = 2 })
  refused("a time of day is needed", { max = 2, schedule = { { from = "8", to = "20:00" } } })
  refused("min = 5 is more than max = 2", { max = 2, schedule = { { from = "8:00", to = "20:00", min = 5 } } })
  refused("max = 1.5", { max = 1.5 })
  refused("expected a table", 5)
end)

tap.done()
