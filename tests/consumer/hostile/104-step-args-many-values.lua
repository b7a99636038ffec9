-- data of millions of values, converted in one piece: the turn waits for it
-- expect: any
local rille = require "rille"
local row, rows = {}, {}
for i = 1, 1000 do row[i] = i + 0.123456789 end
for i = 1, 3000 do rows[i] = row end
for i = 1, 20 do pcall(rille.step, "many", { args = rows }, function() return rows end) end
