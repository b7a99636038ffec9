-- looks for each function of the debug library and uses it to reach upvalues, registry, hooks and metatables
-- expect: error
local rille = require "rille"
local leaks = {}
local function try(name, f) local ok, v = pcall(f) if ok and v ~= nil then leaks[#leaks + 1] = name end end
try("getregistry", function() return debug.getregistry() end)
try("getupvalue", function() return debug.getupvalue(rille.step, 1) end)
try("setupvalue", function() return debug.setupvalue(rille.step, 1, print) end)
try("upvaluejoin", function() debug.upvaluejoin(print, 1, print, 1) return true end)
try("getmetatable", function() return debug.getmetatable(rille) end)
try("setmetatable", function() return debug.setmetatable(nil, { __index = {} }) end)
try("getinfo", function() return debug.getinfo(1, "f").func end)
try("getlocal", function() return debug.getlocal(2, 1) end)
try("setlocal", function() return debug.setlocal(1, 1, 1) end)
try("sethook", function() debug.sethook(function() end, "", 1) return true end)
try("sethook off", function() debug.sethook() return true end)
try("gethook", function() return debug.gethook() end)
try("getfenv", function() return debug.getfenv(print) end)
try("setfenv", function() return debug.setfenv(rille.step, {}) end)
try("debug", function() return debug.debug end)
try("require", function() return require("debug").getregistry end)
if #leaks == 0 then error("only traceback") end
return "ESCAPED " .. table.concat(leaks, ", ")
