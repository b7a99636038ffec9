-- A fiber that is cancelled at work, and tries to swallow it.
local rille = require "rille"
local counted = require "counted"
local handle = rille.spawn("worker", function()
  rille.defer(function()
    counted.step("clean up", function() return true end)
    rille.sleep("10s")
    counted.step("sign off", function() return true end)
  end)
  local box = rille.rent("box", { gpu = "T4" })
  while true do
    pcall(function() box:call("dig", { sim = { duration = "40h", result = 1 } }, function() return 1 end) end)
  end
end)
rille.sleep("15m")
handle:cancel("no longer needed")
local ok, err = pcall(function() handle:wait() end)
counted.step("after", function() return true end)
return { ok = ok, kind = err.kind, message = err.message }
