local rille = require "rille"
local counted = require "counted"
local answers = rille.map("ask", { 1, 2, 3, 4 }, function(n)
  return rille.pool("api", { slots = 2, rate = 3, per = "20s" }, function()
    rille.step("ask", function() rille.sleep("2s") return n end)
    return counted.step("answer", { args = n }, function() return n * n end)
  end)
end)
return answers
