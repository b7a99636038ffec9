-- replaces the globals that Rille's own Lua code may use: pcall, error, type, pairs, setmetatable, tostring
-- expect: any
local rille = require "rille"
local real = { pcall = pcall, error = error, type = type, pairs = pairs, ipairs = ipairs, next = next, select = select, tostring = tostring,
  setmetatable = setmetatable, getmetatable = getmetatable, rawget = rawget, rawset = rawset, unpack = unpack, assert = assert, require = require }
local stolen = {}
for name, f in real.pairs(real) do
  local function evil(...) stolen[#stolen + 1] = { name, ... } return f(...) end
  real.pcall(function() _G[name] = evil end)
  real.pcall(real.rawset, _G, name, evil)
end
real.pcall(rille.step, "s", function() return { 1 } end)
real.pcall(rille.map, "m", { 1, 2 }, function(x) return x end)
real.pcall(function() return rille.nn.linear(2, 2)(rille.device("cpu"):ones { 1, 2 }):sum():item() end)
real.pcall(rille.error, { message = "m" })
local count = 0
for i = 1, #stolen do for k = 2, #stolen[i] do if real.type(stolen[i][k]) == "function" then count = count + 1 real.pcall(stolen[i][k], -1) end end end
return count
