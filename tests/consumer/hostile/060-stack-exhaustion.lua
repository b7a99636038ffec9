-- recursion to the end of the Lua stack with many arguments, caught and repeated at the brink
-- expect: error
local function wide(...) return (wide(1, 2, 3, 4, 5, 6, 7, 8, ...)) end
local function deep(n) return (deep(n + 1)) end
for i = 1, 20 do pcall(wide) pcall(deep, 0) end
local function brink(n) pcall(brink, n + 1) return n end
while true do brink(0) end
