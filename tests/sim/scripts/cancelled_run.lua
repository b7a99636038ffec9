-- A person cancels it after five hours, while a fiber and the script itself are at work.
local rille = require "rille"
local counted = require "counted"
rille.defer(function()
  counted.step("undo", function() return 1 end)
  rille.sleep("20s")
  counted.step("undo", function() return 2 end)
end)
local box = rille.rent("box", { gpu = "T4" })
counted.step("before", function() return 1 end)
rille.spawn("beside", function()
  rille.defer(function() counted.step("beside undone", function() return true end) end)
  rille.rent("second", { gpu = "L4" }):call("dig", { sim = { duration = "40h" } }, function() end)
end)
while true do
  pcall(function() box:call("dig", { sim = { duration = "40h" } }, function() end) end)
end
