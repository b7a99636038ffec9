local rille = require "rille"
local counted = require "counted"
local args = rille.args { n = 1, fails = false }
local box = rille.rent("box", { gpu = "T4" })
if args.fails then rille.error { kind = "quota", message = "no more seats" } end
local got = box:call("evaluate", { args = args.n, sim = { duration = "10m", result = args.n * 7 } }, function(n)
  return n * 7
end)
return counted.step("score", { args = got }, function() return got end)
