-- each deferred function defers two more: the end of the scope never comes
-- expect: error
local rille = require "rille"
local function breed() rille.defer(breed) rille.defer(breed) pcall(rille.sleep, "1ms") end
rille.scope("nursery", function() rille.defer(breed) error("go") end)
