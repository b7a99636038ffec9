-- memory is full when the clean-up has to run, which needs memory itself
-- expect: error
local rille = require "rille"
local kept, n = {}, 0
rille.defer(function() while true do pcall(function() n = n + 1 kept[n] = { ("y"):rep(100) } end) end end)
rille.defer(function() rille.spawn("x", function() end) rille.step("y", function() return ("z"):rep(1e6) end) end)
pcall(function() while true do n = n + 1 kept[n] = ("x"):rep(n % 977) .. n end end)
rille.scope("full", function() rille.defer(function() kept[#kept + 1] = {} end) error({ kept }) end)
