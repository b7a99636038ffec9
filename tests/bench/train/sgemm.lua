-- Products of f32 matrices through Lua: for each shape of 'm,n,k;m,n,k' the seconds of one call and the wait for it,
-- the median of many. usage: rille run sgemm.lua --shapes "1024,1024,1024"
local rille = require "rille"

local args = rille.args { shapes = "1024,1024,1024", calls = 31 }

return rille.step("products", { args = args }, function()
  local native = require "rille.native"
  local dev, medians = rille.device(), {}
  for m, n, k in args.shapes:gmatch("(%d+),(%d+),(%d+)") do
    local a, b, times = dev:randn { tonumber(m), tonumber(k) }, dev:randn { tonumber(k), tonumber(n) }, {}
    for call = 1, args.calls + 3 do
      local began = native.clock()
      local c = a:matmul(b)
      dev:synchronize()
      if call > 3 then times[#times + 1] = native.clock() - began end
      c:free()
    end
    table.sort(times)
    medians[#medians + 1] = times[math.floor(#times / 2) + 1]
  end
  return medians
end)
