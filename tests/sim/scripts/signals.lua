local rille = require "rille"
local counted = require "counted"
local first = rille.signal("approve", { timeout = "30m", default = "nobody" })
counted.step("first", { args = first }, function() return first end)
local second = rille.signal("go", { timeout = "1d", default = "never" })
counted.step("second", { args = second }, function() return second end)
return { first, second }
