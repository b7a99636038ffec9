-- reads millions of values into Lua tables and strings in one piece
-- expect: error
local rille = require "rille"
local e = rille.device("cpu"):ones { 1 }:expand(2000000)
while true do
  print(#e:totable())
  rille.sleep("1ms")
  print(#e:bytes())
end
