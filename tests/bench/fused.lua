-- A chain of eight element-wise operations, one by one and compiled; in turns, the best of many. Prints one line of
-- JSON: seconds for each number of elements. usage: rille run fused.lua
local rille = require "rille"

return rille.step("bench", {}, function()
  local native = require "rille.native"
  local dev = rille.device()
  local out = {}
  for _, n in ipairs { 65536, 4194304 } do
    local x, b = dev:randn { n / 1024, 1024 }, dev:randn { 1024 }
    local function chain(a) return ((a * 2 + b):relu() * a - 0.5):clamp(-3, 3):abs() * 0.25 end
    local ways = { plain = chain, compiled = rille.compile(chain) }
    local calls, best = n > 1e6 and 2 or 50, { plain = math.huge, compiled = math.huge }
    for _ = 1, 40 do
      for way, fn in pairs(ways) do
        local began = native.clock()
        local kept = {}                              -- a tensor without a handle is not computed
        for i = 1, calls do kept[i] = fn(x) end
        dev:synchronize()
        best[way] = math.min(best[way], (native.clock() - began) / calls)
        for _, t in ipairs(kept) do t:free() end
      end
    end
    best.elements = n
    out[#out + 1] = best
  end
  return out
end)
