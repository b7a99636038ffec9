-- 64-bit and complex literals are cdata without ffi: operates on them, overflows them, uses them everywhere
-- expect: any
local rille = require "rille"
local ok, list = pcall(function()
  return load("return { 1LL, -9223372036854775807LL - 1LL, 18446744073709551615ULL, 1i, 0x7fffffffffffffffLL }", "=c")()
end)
if not ok then error(list, 0) end
for _, a in ipairs(list) do
  for _, b in ipairs(list) do
    print(pcall(function() return a / b end), pcall(function() return a % b end), pcall(function() return a ^ b end), pcall(function() return a < b end))
  end
  print(pcall(rille.sleep, a), pcall(rille.step, "s", function() return a end), pcall(string.rep, "x", a), pcall(function() return a() end))
  print(pcall(function() return rille.device("cpu"):zeros { a } end), pcall(setmetatable, a, {}), pcall(getmetatable, a), pcall(bit.rol, a, a))
  print(pcall(function() return a.x end), pcall(function() a.x = 1 end), pcall(function() for i = a, a do end end), pcall(tostring, a))
end
return list
