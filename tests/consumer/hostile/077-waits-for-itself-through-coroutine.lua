-- a fiber that waits for itself, from a coroutine, from a clean-up, and in a race with itself
-- expect: any
local rille = require "rille"
local h
h = rille.spawn("me", function()
  rille.sleep("1ms")
  rille.defer(function() pcall(function() h:wait() end) end)
  print(pcall(coroutine.wrap(function() return h:wait() end)))
  print(pcall(rille.all, { h, h }))
  print(pcall(rille.race, { h, function() rille.sleep("2ms") end }))
  h:cancel("myself")
  h:wait()
end)
print(pcall(h.wait, h))
