-- sorts, transforms and scans a few megabytes again and again, reading each time
-- expect: timeout
local rille = require "rille"
local dev = rille.device("cpu")
local x = dev:randn { 1048573 }
while true do
  local v, p = x:sort()
  print(v:cumsum():narrow(1, 1, 1):item(), p:narrow(1, 1, 1):item())
  print(x:rfft():sum():item(), x:topk(500000):sum():item())
end
