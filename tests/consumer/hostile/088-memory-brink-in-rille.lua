-- fills memory to the last bytes and then calls each of Rille's functions there
-- expect: any
local rille = require "rille"
local size = 33554432
local kept = {}
while size > 64 do
  local ok, s = pcall(string.rep, "x", size)
  if ok then kept[#kept + 1] = s else size = size / 2 end
end
for i = 1, 50 do
  pcall(rille.spawn, "f", function() end)
  pcall(rille.step, "s", function() return { 1, 2, 3 } end)
  pcall(rille.sleep, "1ms")
  pcall(rille.log, "m", { a = 1 })
  pcall(rille.error, { message = "m", cause = { message = "c" } })
  pcall(rille.defer, function() end)
  pcall(rille.scope, function() end)
  pcall(rille.now)
  pcall(function() return rille.device("cpu"):ones { 4 }:totable() end)
end
