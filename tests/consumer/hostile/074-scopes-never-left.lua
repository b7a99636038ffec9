-- scopes inside scopes without an end, each with a clean-up
-- expect: error
local rille = require "rille"
local function nest(n)
  return rille.scope(("s"):rep(100) .. n, function()
    rille.defer(function() for i = 1, 1000 do end end)
    nest(n + 1)
  end)
end
nest(1)
