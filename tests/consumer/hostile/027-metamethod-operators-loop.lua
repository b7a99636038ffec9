-- every operator of a table loops: arithmetic, comparison, concatenation, calls, iteration, all inside pcall
-- expect: timeout
local function spin() while true do end end
local mt = {}
for _, k in ipairs { "add", "sub", "mul", "div", "mod", "pow", "unm", "concat", "len", "eq", "lt", "le", "call", "index",
  "newindex", "tostring", "pairs", "ipairs", "gc", "mode", "metatable" } do mt["__" .. k] = spin end
local a, b = setmetatable({}, mt), setmetatable({}, mt)
local tries = {
  function() return a < b end, function() return a .. "x" end, function() return -a end, function() return a.x end,
  function() return a() end, function() return tostring(a) end, function() for _ in pairs(a) do end end,
  function() print(a) end, function() return ("x"):rep(a) end, function() error(a) end,
}
for i = 1, #tries do pcall(tries[i]) end
error(a)
