-- An inner scope fails and is caught; what it was about to keep is undone.
local rille = require "rille"
local counted = require "counted"
local told = {}
local box = rille.scope("outer", function()
  local outer = rille.rent("outer", { gpu = "T4" })
  local ok, err = pcall(rille.scope, "inner", function()
    rille.rent("inner", { gpu = "L4" })
    rille.errdefer(function() counted.step("take back", function() return 1 end) end)
    rille.defer(function() counted.step("tidy", function() return 2 end) end)
    counted.step("publish", function() return 3 end)
    rille.error { kind = "quota", message = "on purpose" }
  end)
  told.ok, told.kind = ok, err.kind
  return outer                                   -- moves to the run's scope
end)
told.got = box:call("go on", { sim = { duration = "5m", result = "went on" } }, function() return "went on" end)
return told
