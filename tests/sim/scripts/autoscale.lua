-- A cluster grows while items wait and shrinks when none do. Whichever process dies, and when, every item is done once
-- by a living instance, and the count keeps to its bounds.
local rille = require "rille"
local counted = require "counted"
local gang = rille.cluster("gang", { count = 1, gpu = "T4", ttl = "12h" })
rille.autoscale(gang, { metric = "queue", above = 1, below = 0.5, cooldown_out = "2m", cooldown_in = "10m",
  interval = "4m", min = 1, max = 2 })
local squares = gang:map("square", { 1, 2, 3 }, function(box, n)
  if gang.count < 1 or gang.count > 2 then error("a count of " .. gang.count) end
  return box:call("square", { args = n, sim = { duration = "20m", result = n * n } }, function(k) return k * k end)
end)
while gang.count > 1 do rille.sleep("until calm", "10m") end
counted.step("sum", { args = squares }, function() return squares[1] + squares[2] + squares[3] end)
return squares
