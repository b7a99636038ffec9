-- thousands of products of 1500 x 1500 are queued before anything is read, then the script ends
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local a, x = dev:randn { 1500, 1500 }, dev:randn { 1500, 1500 }
for i = 1, 9000 do x = a:matmul(x) end
return x:sum():item()
