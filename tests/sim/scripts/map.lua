local rille = require "rille"
local counted = require "counted"
local cities = { { name = "Ulm", n = 1 }, { name = "Bern", n = 2 }, { name = "Graz", n = 3 } }
local stored = rille.map("city", cities, { limit = 2, key = "name" }, function(city)
  local box = rille.rent("box", { gpu = "T4" })
  local found = box:call("search", { args = city, sim = { duration = "20m", result = city.n * 10 } }, function(c)
    return c.n * 10
  end)
  return counted.step("store", { args = found }, function() return found + 1 end)
end)
return stored
