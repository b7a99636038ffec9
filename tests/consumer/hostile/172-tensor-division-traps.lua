-- the whole-number divisions that trap in the processor: the smallest number by -1, and by zero
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
for _, dtype in ipairs { "i64", "i32", "i8", "u8", "bool" } do
  for _, low in ipairs { -2 ^ 63, -2 ^ 31, -128 } do
    for _, by in ipairs { -1, 0 } do
      for _, op in ipairs { "floor_divide", "remainder", "pow", "div", "gather" } do
        pcall(function()
          local a = dev:full { 5, value = low, dtype = dtype }
          local b = dev:full { 5, value = by, dtype = dtype }
          if op == "gather" then return a:gather(1, b):totable() end
          print(dtype, low, by, op, a[op](a, b):totable()[1], a[op](a, by):totable()[1])
        end)
      end
    end
  end
end
return dev:full { 3, value = -2 ^ 63, dtype = "i64" }:neg():abs():sum():item()
