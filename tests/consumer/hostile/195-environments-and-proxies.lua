-- getfenv, setfenv, module, newproxy, gcinfo and _ENV, by name, by rawget, by load's environment
-- expect: error
local leaks = {}
local function try(name, f) local ok, v = pcall(f) if ok and v then leaks[#leaks + 1] = name end end
for _, n in ipairs { "getfenv", "setfenv", "module", "newproxy", "gcinfo", "load_library" } do
  try(n, function() return _G[n] end)
  try("raw " .. n, function() return rawget(_G, n) end)
  try("meta " .. n, function() return getmetatable(_G).__index[n] end)
  try("load " .. n, function() return load("return " .. n, "=x", "t", setmetatable({}, { __index = _G }))() end)
end
try("env", function() return setfenv(1, {}) end)
try("proxy gc", function() getmetatable(newproxy(true)).__gc = function() while true do end end return true end)
if #leaks == 0 then error("none of them") end
return "ESCAPED " .. table.concat(leaks, ", ")
