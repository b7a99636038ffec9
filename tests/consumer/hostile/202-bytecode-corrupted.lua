-- if dumping and loading work at all, flips each byte of a function's bytecode and runs what comes out
-- expect: any
local rille = require "rille"
local function victim(a, b)
  local t = { a, b, x = "text", y = 1.5 }
  for i = 1, 3 do t[i] = (t[i] or 0) + i end
  return function() return t, a, b end
end
for _, strip in ipairs { false, true } do
  local ok, code = pcall(string.dump, victim, strip)
  if not ok then error(code, 0) end
  for i = 1, #code do
    for _, x in ipairs { 0, 1, 127, 128, 255 } do
      local f = load(code:sub(1, i - 1) .. string.char(x) .. code:sub(i + 1), "=x", "b") or loadstring(code:sub(1, i - 1) .. string.char(x) .. code:sub(i + 1))
      if f then pcall(f, {}, "b") pcall(function() return f(1, 2)() end) end
    end
    if i % 20 == 0 then rille.sleep("1ms") end
  end
end
