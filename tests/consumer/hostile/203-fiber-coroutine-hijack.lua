-- takes the coroutine of another fiber while it waits in a sleep, and resumes, wraps, closes and inspects it
-- expect: any
local rille = require "rille"
local co, main = nil, coroutine.running()
local h = rille.spawn("victim", function()
  co = coroutine.running()
  print("victim gets", pcall(rille.sleep, "20ms"))
  print("victim again", pcall(rille.step, "s", function() rille.sleep("5ms") return 1 end))
  return "victim's end"
end)
rille.sleep("2ms")
for i = 1, 5 do
  print(type(co), pcall(coroutine.status, co), pcall(coroutine.resume, co, "stolen", i))
  print(pcall(debug.traceback, co))
end
local other = rille.spawn("other", function() print("main is", pcall(coroutine.resume, main, "stolen")) rille.sleep("1ms") print(pcall(coroutine.resume, main)) end)
print(pcall(other.wait, other), pcall(h.wait, h))
print(pcall(coroutine.resume, co), pcall(coroutine.resume, coroutine.running()))
