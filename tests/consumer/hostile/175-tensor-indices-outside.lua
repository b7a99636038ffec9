-- indices far outside, negative and NaN in every operation that takes them, for reading and for writing
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local t = dev:arange { 64, dtype = "f32" }
for _, v in ipairs { -1, 64, 2 ^ 31, -2 ^ 31, 2 ^ 61, -2 ^ 63, 0 / 0, 1e300 } do
  for _, dtype in ipairs { "i64", "i32", "u8", "f32" } do
    local ok, i = pcall(function() return dev:full { 8, value = v, dtype = dtype } end)
    if ok then
      for _, f in ipairs {
        function() return t:gather(1, i) end, function() return t:scatter(1, i, 1) end, function() return t:scatter_add(1, i, dev:ones { 8 }) end,
        function() return t:index_select(1, i) end, function() return t:index_copy(1, i, dev:ones { 8 }) end,
        function() return t:index_add(1, i, dev:ones { 8 }) end, function() return i:embedding(t:view(8, 8)) end, function() return i:one_hot(4) end,
        function() return t:view(8, 8):cross_entropy(i) end, function() return t:view(8, 8):nll_loss(i) end,
        function() return t:view(8, 8):cross_entropy(i, { weight = dev:ones { 3 }, ignore_index = v }) end,
        function() return t:view(1, 1, 8, 8):scaled_dot_product_attention(t:view(1, 1, 8, 8), t:view(1, 1, 8, 8), { lengths = i:narrow(1, 1, 1) }) end,
      } do pcall(function() return f():totable() end) end
    end
  end
end
print(t:sum():item())
