-- Holds machines in nested scopes and has durable work to do whenever it unwinds. cancel_loop.py interrupts it.
local rille = require "rille"
local args = rille.args { effects = "effects" }

local function effect(name)
  local file = assert(io.open(args.effects, "a"))
  file:write(name, "\n")
  file:close()
end

local outer = rille.rent("outer", { provider = "local", ttl = "1h" })
rille.defer(function()
  rille.step("clean outer", function() effect("clean-outer") end)
  outer:exec("farewell", { argv = { "sh", "-c", "sleep 0.02; echo bye" } })
  rille.sleep("settle", "20ms")
  rille.step("clean outer", function() effect("clean-outer-again") end)
end)
local first = rille.spawn("side", function()
  local box = rille.rent("side", { provider = "local", ttl = "1h" })
  rille.defer(function() rille.step("clean side", function() effect("clean-side") end) end)
  for i = 1, 5 do
    box:call("nap", { args = { i = i } }, function(a) return a.i end)
    rille.sleep("between", "10ms")
  end
  return "side"
end)
local sum = 0
for i = 1, 10 do
  sum = sum + rille.step("add", function() effect("add" .. i); return i end)
  rille.sleep("pause", "10ms")
end
pcall(function() rille.race { function() rille.sleep("a", "5ms") end, function() rille.sleep("b", "1h") end } end)
return { sum = sum, side = first:wait() }
