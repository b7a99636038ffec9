-- pcall(pcall, pcall, ...) of the greatest height, with a loop inside, so that each limit needs thousands of unwinds
-- expect: timeout
local function tower(n, f) if n == 0 then return f() end return pcall(tower, n - 1, f) end
while true do tower(8000, function() while true do end end) end
