-- reads the process's standard input without naming it, which would block the host for ever
-- expect: error
local rille = require "rille"
pcall(dofile)
pcall(loadfile)
pcall(loadfile, nil)
pcall(dofile, "/dev/stdin")
pcall(loadfile, "-")
pcall(rille.step, "in", function() pcall(dofile) pcall(loadfile) pcall(io.read, "*a") pcall(io.lines) return io.read(1) end)
error("nothing blocked")
