-- step results of many megabytes, each different, so that each is another file on disk
-- expect: error
local rille = require "rille"
local base = ("x"):rep(15000000)
for i = 1, 100000 do rille.step("blob", function() return base .. i end) end
return "all were written"
