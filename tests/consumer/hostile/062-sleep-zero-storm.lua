-- sleeps of no length in an endless loop: the runtime must come back for each of them
-- expect: timeout
local rille = require "rille"
while true do rille.sleep(0) end
