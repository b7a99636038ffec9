-- Much to do while it unwinds: steps, a rest, a machine rented to tidy up, and a deferred function that fails.
local rille = require "rille"
local counted = require "counted"
local ok, err = pcall(rille.scope, "whole", function()
  rille.rent("first", { gpu = "T4" })
  rille.defer(function()
    local helper = rille.rent("helper", { gpu = "cpu" })
    helper:exec("tidy", { argv = { "true" }, sim = { duration = "2m" } })
    counted.step("report", function() return true end)
  end)
  rille.defer(function() error("this one fails, and is only noted") end)
  rille.errdefer(function()
    for i = 1, 3 do counted.step("undo", { args = i }, function() return i end) end
    rille.sleep("1m")
  end)
  rille.spawn("beside", function()
    rille.defer(function() counted.step("beside undone", function() return true end) end)
    rille.rent("second", { gpu = "L4" }):call("dig", { sim = { duration = "9h", result = 1 } }, function() return 1 end)
  end)
  rille.sleep("10m")
  rille.error { kind = "integrity", message = "it does not add up" }
end)
counted.step("after", function() return true end)
return { ok = ok, kind = err.kind, message = err.message }
