-- a recorded graph of very many operations, one behind the other: backward and release may recurse
-- expect: any
local rille = require "rille"
local x = rille.device("cpu"):ones { 1, requires_grad = true }
local y = x
for i = 1, 150000 do
  y = y * 1.0000001
  if i % 2000 == 0 then rille.sleep("1ms") end
end
print(pcall(y.backward, y))
y, x = nil, nil
collectgarbage()
