-- markers with ever new names of the greatest length, each one recorded
-- expect: timeout
local rille = require "rille"
local i = 0
while true do i = i + 1 rille.patched(("p"):rep(190) .. i) end
