-- a table that is its own __call: the search for the function to call may never end in C
-- expect: error
local t = {}
setmetatable(t, { __call = t })
local u, v = {}, {}
setmetatable(u, { __call = v })
setmetatable(v, { __call = u })
print(pcall(u, 1))
t()
