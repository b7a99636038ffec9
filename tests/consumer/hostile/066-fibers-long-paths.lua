-- fibers nested until each path has 4 KB, and thousands of children there: memory of the host, not of Lua
-- expect: error
local rille = require "rille"
local name = ("f"):rep(195)
local function nest(depth)
  if depth == 0 then
    for i = 1, 90000 do
      rille.spawn(name, function() rille.sleep("1h") end)
      if i % 500 == 0 then rille.sleep("1ms") end
    end
    error("all were accepted")
  end
  rille.spawn(name, function() nest(depth - 1) end):wait()
end
nest(18)
