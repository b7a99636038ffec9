local rille = require "rille"
local counted = require "counted"
rille.budget { limit = 12 }
local first = rille.rent("first", { gpu = "H100:8", min_ttl = "10m" })
local ok, err = pcall(rille.rent, "second", { gpu = "H100:8" })
if ok then counted.wrong("the budget let a second one through") end
counted.step("stop", function() return true end)
return { kind = not ok and err.kind }
