-- reads the recorded clock without end: each reading is a journal entry on disk
-- expect: timeout
local rille = require "rille"
while true do rille.now() end
