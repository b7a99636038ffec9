-- a step whose body ignores its own time limits and the run's, with a thousand attempts without a pause
-- expect: timeout
local rille = require "rille"
pcall(rille.step, "s", { timeout = "10ms", retry = { attempts = 1000, initial = "0ms", cap = "0ms" } }, function()
  while true do pcall(function() while true do end end) end
end)
while true do end
