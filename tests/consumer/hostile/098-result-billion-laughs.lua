-- returns a table of doubled references to a megabyte string: a few values, but terabytes of JSON
-- expect: error
local t = ("x"):rep(1000000)
for i = 1, 20 do t = { t, t } end
return t
