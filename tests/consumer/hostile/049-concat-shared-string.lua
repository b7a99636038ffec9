-- table.concat of many references to one big string: gigabytes from kilobytes
-- expect: memory
local s, t = ("x"):rep(10000000), {}
for i = 1, 1000 do t[i] = s end
return #table.concat(t, s)
