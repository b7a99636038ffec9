-- one array and one hash part as big as can be, grown at once by constructors and far indices
-- expect: error
local rille = require "rille"
for _, i in ipairs { 2 ^ 26, 2 ^ 27, 2 ^ 31 - 1, 2 ^ 31, 2 ^ 53 } do local t = {} print(pcall(function() t[i] = 1 end)) end
local t = {}
for i = 1, 1e9 do t[i] = i if i % 1000000 == 0 then rille.sleep("1ms") end end
