-- clusters, and an autoscaler on a forged cluster whose methods are the script's
-- expect: error
local rille = require "rille"
print(pcall(rille.cluster, "c", { count = 1000, provider = "local", setup = function(box) box:exec("x", { argv = { "id" } }) end }))
print(pcall(rille.cluster, "c", { count = 2 ^ 53, provider = "sim" }))
print(pcall(rille.cluster, "c", { count = 0 / 0 }))
local fake = setmetatable({ name = "c", count = 1, busy = 1e9, waiting = 1e9, released = false }, { __index = function(_, k)
  return function() print("called", k) return {} end
end })
print(pcall(rille.autoscale, fake, { max = 2 ^ 53, interval = 0, metric = function() while true do end end }))
print(pcall(rille.autoscale.run, fake, { max = 1000, interval = "0s", cooldown_out = 0, metric = function() return 1e9 end }))
rille.sleep("100ms")
error("no machine")
