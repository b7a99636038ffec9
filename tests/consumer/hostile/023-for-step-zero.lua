-- numeric loops that cannot end: step zero, infinity, and steps below the precision
-- expect: timeout
local ways = { { 1, 2, 0 }, { 2 ^ 53, 2 ^ 53 + 10, 1 }, { 1, math.huge, 1 }, { -math.huge, 0, 1 } }
for _, w in ipairs(ways) do pcall(function() for i = w[1], w[2], w[3] do end end) end
while true do end
