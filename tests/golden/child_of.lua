local rille = require "rille"
local args = rille.args { n = 0 }
return { squared = rille.step("square", function() return args.n * args.n end) }
