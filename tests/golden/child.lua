-- A run that starts another one.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local given = rille.run("child_of.lua", { n = 4 })
rille.step("die", function() die() end)
return { given, rille.step("after", function() return "live" end) }
