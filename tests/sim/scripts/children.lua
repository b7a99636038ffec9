local rille = require "rille"
local counted = require "counted"
local scores = rille.map("part", { 1, 2 }, function(n)
  local score = rille.run("child.lua", { n = n })
  return counted.step("keep", { args = score }, function() return score end)
end)
local ok, err = pcall(rille.run, "child.lua", { fails = true })
counted.step("after", function() return true end)
return { scores = scores, ok = ok, kind = err.kind }
