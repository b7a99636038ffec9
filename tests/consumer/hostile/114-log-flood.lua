-- log lines of a megabyte as fast as possible: whatever queues them grows
-- expect: timeout
local rille = require "rille"
local s = ("\1"):rep(1000000)
while true do rille.log(s, { s = s }) end
