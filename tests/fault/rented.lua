-- What bill_loop.py kills: machines of a cloud in another process, side by side, in nested scopes, tried again.
local rille = require "rille"

local function work(n)
  return rille.scope("work", function()
    local box = rille.rent("w" .. n, { gpu = "cpu", provider = "remote", region = "r" .. n, ttl = "10m" })
    rille.step("use", function() return box:describe().name end)
    rille.sleep("15ms")
    if n == 3 then
      rille.scope("inner", function()
        rille.rent("helper", { gpu = "cpu", provider = "remote", ttl = "10m" })
        rille.sleep("10ms")
      end)
    end
    return n * n
  end)
end

local sum = 0
for _, square in ipairs(rille.map("m", { 1, 2, 3 }, work)) do sum = sum + square end
return sum
