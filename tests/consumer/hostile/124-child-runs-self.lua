-- runs itself as a child run, which does the same: each child has memory of its own
-- expect: error
local rille = require "rille"
local args = rille.args { depth = 0 }
local kept = ("x"):rep(50000000)
rille.run("124-child-runs-self.lua", { depth = args.depth + 1 })
error("children ended " .. #kept)
