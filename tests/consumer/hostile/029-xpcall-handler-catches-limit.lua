-- the limit's error enters a handler which itself computes on, nested a hundred times
-- expect: timeout
local function layer(n)
  local function handler() if n > 0 then layer(n - 1) end while true do end end
  xpcall(function() while true do end end, handler)
end
while true do layer(100) end
