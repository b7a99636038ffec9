-- one tensor of a terabyte, and then ever smaller ones until one is given
-- expect: memory
local rille = require "rille"
local dev = rille.device("cpu")
local kept = {}
for i = 40, 20, -1 do
  local ok, t = pcall(function() local t = dev:ones { 2 ^ i } t:narrow(1, 1, 1):item() return t end)
  if ok then kept[#kept + 1] = t end
end
dev:full { 1024, 1024, 1024, value = 1 }:sum():item()
