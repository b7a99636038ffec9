-- a result whose tables have metamethods that loop, change the table, or raise while it is converted
-- expect: any
local t = {}
for i = 1, 100 do t["k" .. i] = i end
local function evil(x) for i = 1, 1000 do rawset(x, "n" .. i, {}) end while true do end end
return setmetatable({ setmetatable(t, { __pairs = evil, __index = evil, __len = evil, __next = evil, __tostring = evil }) },
  { __index = evil, __len = function() return 2 ^ 40 end, __pairs = evil, __ipairs = evil, __tojson = evil })
