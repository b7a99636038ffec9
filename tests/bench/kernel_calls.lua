-- run: ephemeral
-- What a call of a kernel costs in Lua, in ns: prints one JSON object. Run by kernel.py through lua_runner.
local rille = require "rille"
local native = require "rille.native"
local dev = rille.device()
local k = dev:kernel "__global__ void nothing(int n, float a, const float* x, float* y) {}"
local x, y = dev:ones { 64 }, dev:ones { 64 }
local go, shape = k:bind { grid = 1, block = 32 }, { grid = 1, block = 32 }

local function median(list)
  table.sort(list)
  return list[math.floor((#list + 1) / 2)]
end

-- 60 calls stay below the number at which launches are sent, so the lane does not work meanwhile.
local function cost(fn)
  local times = {}
  for round = 1, 200 do
    dev:synchronize()
    local start = native.clock()
    for _ = 1, 60 do fn() end
    times[round] = (native.clock() - start) / 60 * 1e9
  end
  return median(times)
end

local add = cost(function() y:add_(x) end)
local bound = cost(function() go(64, 0.5, x, y) end)
local launched = cost(function() k:launch(shape, 64, 0.5, x, y) end)
dev:synchronize()
collectgarbage()
local before = collectgarbage("count")
for _ = 1, 1000 do go(64, 0.5, x, y) end
local bytes = (collectgarbage("count") - before) * 1024 / 1000
print(("{\"go_ns\": %.0f, \"launch_ns\": %.0f, \"add_ns\": %.0f, \"go_lua_bytes\": %.1f}"):format(
  bound, launched, add, bytes))
