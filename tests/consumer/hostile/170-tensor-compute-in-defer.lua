-- starts endless tensor work, and reads more of it in the clean-up after the limit
-- expect: timeout
local rille = require "rille"
local dev = rille.device("cpu")
local e = dev:ones { 1 }:expand(1e11)
for i = 1, 20 do rille.defer(function() pcall(function() return (e:sum() + i):item() end) end) end
for i = 1, 20 do rille.spawn("s", function() return (e:sum() - i):item() end) end
rille.sleep("1h")
