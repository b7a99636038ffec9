-- progress with doubled references, NaN, infinities, negative totals and megabyte names, as fast as possible
-- expect: error
local rille = require "rille"
local t = ("x"):rep(1000000)
for i = 1, 20 do t = { t, t } end
print(pcall(rille.progress, { metrics = { t = t } }), pcall(rille.progress, { measured = t }))
print(pcall(rille.progress, { done = 0 / 0, total = -1 / 0, rate = 1e308, seconds_left = -1, loss = 0 / 0 }))
local metrics = {}
for i = 1, 20000 do metrics["m" .. i] = i end
while true do rille.progress { what = ("\1"):rep(500000), done = 1, total = 0, metrics = metrics } end
