-- looks for the foreign function interface and the compiler's control in all places where they might be left
-- expect: error
local rille = require "rille"
local function look(where)
  local found = {}
  local function try(name, f) local ok, v = pcall(f) if ok and v then found[#found + 1] = where .. " " .. name end end
  try("require", function() return require "ffi" end)
  try("loaded", function() return package.loaded.ffi end)
  try("global", function() return rawget(_G, "ffi") end)
  try("load", function() return load("local ok, f = pcall(require, 'ffi') return ok and f", "=x", "t")() end)
  try("coroutine", function() return coroutine.wrap(function() return require "ffi" end)() end)
  try("callback", function() local f ("x"):gsub("x", function() f = require "ffi" end) return f end)
  try("jit", function() return require("jit").on end)
  try("jit global", function() return jit.on end)
  try("util", function() return require "jit.util" end)
  try("buffer", function() return require "string.buffer" end)
  return found
end
local all = look("workflow")
for _, n in ipairs(rille.step("look", function() return look("step") end)) do all[#all + 1] = n end
rille.defer(function() for _, n in ipairs(look("defer")) do print("ESCAPED", n) end end)
if #all == 0 then error("there is no ffi") end
return "ESCAPED " .. table.concat(all, ", ")
