-- Products of f32 matrices through Lua beside oneDNN alone: by turns in one process, on the same thread. For each shape
-- of 'm,n,k;m,n,k' a list of rounds { lua, burst, alone }: the seconds of one call and the wait for it, of one of eight
-- calls with one wait for all, and of oneDNN's fastest way; each the median of its round.
-- Run by bench_sgemm (tests/bench/sgemm.cpp), which has the module `bench`.
local rille = require "rille"

local args = rille.args { shapes = "1024,1024,1024", rounds = 15, calls = 7 }

return rille.step("products", { args = args }, function()
  local native, bench = require "rille.native", require "bench"
  local dev, result = rille.device "cpu", {}

  local function through_lua(a, b, calls)
    local made = {}
    local began = native.clock()
    for call = 1, calls do made[call] = a:matmul(b) end
    dev:synchronize()
    local seconds = (native.clock() - began) / calls
    for _, c in ipairs(made) do c:free() end
    return seconds
  end

  for m, n, k in args.shapes:gmatch("(%d+),(%d+),(%d+)") do
    m, n, k = tonumber(m), tonumber(n), tonumber(k)
    local a, b, rounds = dev:randn { m, k }, dev:randn { k, n }, {}
    bench.prepare(m, n, k)
    local ways = {
      lua = function() return through_lua(a, b, 1) end,
      burst = function() return through_lua(a, b, 8) end,
      alone = bench.alone,
    }
    local order = { "lua", "alone", "burst", "alone" }    -- a median each, so two for oneDNN: drift meets all alike
    for round = 0, args.rounds do
      local times = { lua = {}, burst = {}, alone = {} }
      for i = 1, args.calls do
        for turn = 1, #order do
          local name = order[(turn + i) % #order + 1]
          table.insert(times[name], ways[name]())
        end
      end
      local medians = {}
      for name, list in pairs(times) do
        table.sort(list)
        medians[name] = list[math.floor(#list / 2) + 1]
      end
      if round > 0 then rounds[round] = medians end       -- the first warms up
    end
    result[#result + 1] = rounds
  end
  return result
end)
