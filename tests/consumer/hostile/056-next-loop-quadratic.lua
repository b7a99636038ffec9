-- walks a big table by calls of next, which has to find its place in a sorted order each time
-- expect: error
local rille = require "rille"
local t = {}
for i = 1, 150000 do t["k" .. i] = i if i % 30000 == 0 then rille.sleep("1ms") end end
local k, n = nil, 0
repeat k = next(t, k) n = n + 1 until not k
while true do local a = next(t) local b = next(t, a) end
