-- changes package.path, cpath, loaders, preload and loaded, and loads C libraries
-- expect: error
local rille = require "rille"
local leaks = {}
local function try(name, f) local ok, v = pcall(f) if ok and v then leaks[#leaks + 1] = name end end
try("loadlib", function() return package.loadlib("libc.so.6", "system") end)
try("loadlib *", function() return package.loadlib("/lib/x86_64-linux-gnu/libc.so.6", "*") end)
try("path", function() package.path = "/etc/?" return require "passwd" end)
try("cpath", function() package.cpath = "/usr/lib/x86_64-linux-gnu/lib?.so.0" return require "z" end)
try("preload", function() return package.preload.ffi() end)
try("loaded", function() return package.loaded.ffi.C end)
try("searchpath", function() return package.searchpath("passwd", "/etc/?") end)
try("loaders", function() return package.loaders[3]("libc") and false end)
try("seeall", function() return package.seeall({}) end)
pcall(function() package.loaded.rille = nil return require("rille") end)
if #leaks == 0 then error("nothing was changed") end
return "ESCAPED " .. table.concat(leaks, " ")
