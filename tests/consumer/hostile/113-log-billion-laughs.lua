-- a log line whose fields are doubled references to a megabyte string
-- expect: any
local rille = require "rille"
local t = ("x"):rep(1000000)
for i = 1, 20 do t = { t, t } end
rille.log("boom", { t = t })
