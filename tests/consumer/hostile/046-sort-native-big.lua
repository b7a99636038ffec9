-- table.sort of a million numbers and of strings with long common prefixes, without a comparator
-- expect: error
local rille = require "rille"
local t = {}
for i = 1, 1000000 do t[i] = (i * 7919) % 1000003 if i % 250000 == 0 then rille.sleep("1ms") end end
table.sort(t)
t = {}
local prefix = ("p"):rep(20000)
for i = 1, 1500 do t[i] = prefix .. (i * 7919) % 1009 end
while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end
