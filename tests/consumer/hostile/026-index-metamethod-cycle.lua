-- __index and __newindex tables that point at each other, and chains of ten thousand of them
-- expect: any
local a, b = {}, {}
setmetatable(a, { __index = b, __newindex = b })
setmetatable(b, { __index = a, __newindex = a })
print(pcall(function() return a.x end), pcall(function() a.x = 1 end))
local t = {}
for i = 1, 10000 do t = setmetatable({}, { __index = t, __newindex = t }) end
print(pcall(function() return t.x end), pcall(function() t.x = 1 end))
local cmp = {}
cmp.__lt = function(x, y) return x < y end
cmp.__eq, cmp.__concat = function(x, y) return x == y end, function(x, y) return x .. y end
local x, y = setmetatable({}, cmp), setmetatable({}, cmp)
print(pcall(function() return x < y end), pcall(function() return x == y end), pcall(function() return x .. y end))
