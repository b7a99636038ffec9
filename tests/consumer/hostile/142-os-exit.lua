-- ends the whole host process from inside a step
-- expect: error
local rille = require "rille"
pcall(function() os.exit(0) end)
pcall(rille.step, "exit", function() os.exit(0, true) end)
pcall(rille.step, "exit", function() os.exit(true) end)
pcall(rille.step, "abort", function() os.exit(-1 / 0) end)
error("the process is still there")
