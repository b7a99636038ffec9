-- measures loops with ever new names, items that are no numbers, and millions of steps, which are kept somewhere
-- expect: any
local rille = require "rille"
for i = 1, 3000 do
  local ok, step = pcall(rille.measure, { workload = ("../w"):rep(50) .. i, items = i % 7 == 0 and 0 / 0 or 1e300, unit = "tokens", model = {} })
  if ok then for k = 1, 30 do pcall(step, k % 2 == 0 and -1 or 1 / 0) end end
end
local step = rille.measure { items = 1 }
for i = 1, 1e7 do step() end
