-- The leases of a cluster end under its work; bounds replace them; whichever process dies and when, every item is done
-- by an instance that was there.
local rille = require "rille"
local counted = require "counted"
local gang = rille.cluster("gang", { count = 2, gpu = "T4", ttl = "50m" })
rille.autoscale(gang, { metric = function() return nil end, interval = "15m", min = 2, max = 2 })
local squares = gang:map("square", { 1, 2, 3 }, function(box, n)
  return box:call("square", { args = n, sim = { duration = "30m", result = n * n } }, function(k) return k * k end)
end)
counted.step("sum", { args = squares }, function() return squares[1] + squares[2] + squares[3] end)
return squares
