local rille = require "rille"
local counted = require "counted"
local function lap(duration)
  return function()
    local box = rille.rent("lap", { gpu = "T4" })
    rille.defer(function() counted.step("park", function() return true end) end)
    local sim = { duration = duration, result = duration }
    return box:call("run", { args = duration, sim = sim }, function(d) return d end)
  end
end
local value, who = rille.race {
  quick = lap "30m", slow = lap "9h", limit = function() rille.sleep("5h") return "late" end,
}
counted.step("winner", { args = who }, function() return who end)
return { value = value, who = who }
