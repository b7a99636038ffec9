-- arrays with one element at a huge index, which a dense encoding would fill with nulls
-- expect: any
local rille = require "rille"
for _, n in ipairs { 1e6, 1e7, 1e8, 2 ^ 31, 2 ^ 53 } do
  print(n, pcall(rille.step, "sparse", function() return { 1, 2, [n] = 3 } end))
end
return { [9000000] = 1, [1] = 1 }
