-- raises a table of doubled references with a megabyte string at the bottom: terabytes when written out
-- expect: error
local t = ("x"):rep(1000000)
for i = 1, 20 do t = { t, t } end
error(t)
