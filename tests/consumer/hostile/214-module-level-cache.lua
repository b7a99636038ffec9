-- memory hidden in closures of coroutines in weak tables in metatables of functions' tables: whatever a count might miss
-- expect: error
local rille = require "rille"
local cache = setmetatable({}, { __mode = "v", __index = {} })
local anchor = getmetatable(cache).__index
for i = 1, 1e9 do
  local block = ("b"):rep(100000) .. i
  local co = coroutine.wrap(function() local held = block coroutine.yield() return held end)
  co()
  anchor[i] = setmetatable({}, { __call = co, __name = block })
  cache[i] = anchor[i]
  if i % 50 == 0 then rille.sleep("1ms") end
end
