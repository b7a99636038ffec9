-- writes into string, table, math, io, os, coroutine and debug by all ways that pass by a guard
-- expect: any
local leaks = {}
for _, lib in ipairs { "string", "table", "math", "io", "os", "coroutine", "debug", "bit", "_G" } do
  local _, t = pcall(function() return _G[lib] end)
  local function try(way, f) if pcall(f) then local ok, v = pcall(function() return t.hostile end) if ok and v == way then leaks[#leaks + 1] = lib .. " by " .. way end end end
  if lib ~= "_G" then
    try("assignment", function() t.hostile = "assignment" end)
    try("rawset", function() rawset(t, "hostile", "rawset") end)
    try("index", function() getmetatable(t).__index.hostile = "index" end)
    try("metatable", function() setmetatable(t, { __index = { hostile = "metatable" } }) end)
    try("newindex", function() getmetatable(t).__newindex = nil t.hostile = "newindex" end)
    try("move", function() table.move({ "move" }, 1, 1, "hostile", t) end)
  end
end
local mt = getmetatable("")
pcall(function() mt.__index = function() return "string" end end)
pcall(function() mt.__add = function() while true do end end end)
pcall(setmetatable, "", {})
pcall(function() return ("x").nothing end)
if #leaks == 0 then error("nothing was changed") end
return table.concat(leaks, ", ")
