-- hundreds of thousands of tensors of one number: little data, but objects of the host for each
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local kept = {}
for i = 1, 2000000 do
  kept[i] = dev:full { 1, value = i }
  if i % 5000 == 0 then dev:synchronize() end
end
