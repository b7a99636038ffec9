-- keeps one tensor of a megabyte after the other, each computed
-- expect: memory
local rille = require "rille"
local dev = rille.device("cpu")
local kept = {}
for i = 1, 100000 do
  kept[i] = dev:ones { 262144 }
  kept[i]:narrow(1, 1, 1):item()
end
