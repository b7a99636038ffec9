-- one enormous weak table, whose clearing is an atomic part of the collector
-- expect: error
local rille = require "rille"
local weak = setmetatable({}, { __mode = "kv" })
while true do
  for i = 1, 50000 do weak[#weak + 1] = {} weak[{}] = i end
  rille.sleep("1ms")
end
