-- a chain of half a million views and unread operations, whose release may recurse on the C stack
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local t = dev:ones { 4, 4 }
for i = 1, 400000 do
  t = i % 2 == 0 and t:transpose() or t:view(4, 4)
  if i % 4000 == 0 then rille.sleep("1ms") end
end
t = nil
collectgarbage()
