-- compiled functions by the thousand, each recorded with very many operations, all kept
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local kept = {}
for i = 1, 100000 do
  local f = rille.compile(function(x, k) for j = 1, 200 do x = (x * k + j):tanh() end return x end)
  for k = 1, 3 do f(dev:ones { 1024, i % 32 + 1 }, i) end
  kept[i] = f
end
