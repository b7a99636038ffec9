-- changes Rille's module and its submodules, and hooks its functions for whoever comes next
-- expect: any
local rille = require "rille"
local leaks = {}
local function evil() return "evil" end
for _, m in ipairs { rille, rille.nn, rille.optim, rille.data, rille.checkpoint, rille.train } do
  if type(m) == "table" then
    pcall(function() m.step = evil end)
    pcall(rawset, m, "step", evil)
    pcall(function() getmetatable(m).__index = evil end)
    pcall(function() getmetatable(m).__newindex = nil m.step = evil end)
    pcall(setmetatable, m, { __index = evil })
    pcall(function() package.loaded.rille = { step = evil } end)
    pcall(table.insert, m, evil)
    local ok, v = pcall(function() return m.step end)
    if ok and v == evil then leaks[#leaks + 1] = tostring(m) end
  end
end
pcall(function() rille.gpus("A100").memory_bytes = 1 end)
if rille.gpus("A100").memory_bytes == 1 then leaks[#leaks + 1] = "gpus" end
if #leaks == 0 then error("nothing was changed") end
return table.concat(leaks, ", ")
