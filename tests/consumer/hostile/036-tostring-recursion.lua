-- __tostring that calls tostring on itself, and one that returns no string, through print and concatenation
-- expect: any
local t = setmetatable({}, { __tostring = function(x) return tostring(x) end })
local u = setmetatable({}, { __tostring = function() return {} end })
local v = setmetatable({}, { __tostring = function(x) return ("%s"):format(x) end })
print(pcall(tostring, t))
print(pcall(tostring, u))
print(pcall(string.format, "%s", v))
print(pcall(print, u))
print(t)
