-- queues hours of work, starts it without waiting for it, and ends by an ordinary error
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local one = dev:ones { 1, 1 }
for i = 1, 100 do
  local x = dev:zeros { 1000, 1000 }
  x:copy_(one:expand(1000, 1e8):matmul(one:expand(1e8, 1000)))
  dev:record()
end
error("left behind")
