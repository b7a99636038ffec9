-- tensors without elements in every operation: reshape by -1, pools, transforms, products, reductions
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local names = { "sum", "mean", "max", "min", "argmax", "var", "std", "norm", "prod", "softmax", "log_softmax", "logsumexp", "cumsum", "sort", "topk", "fft",
  "rfft", "irfft", "fft2", "layer_norm", "rms_norm", "batch_norm", "nonzero", "multinomial", "flip", "tril", "contiguous", "bytes", "totable", "text", "item" }
for _, s in ipairs { { 0 }, { 0, 0 }, { 3, 0 }, { 0, 3 }, { 2, 0, 2 }, { 1, 4, 0, 0 }, { 0, 4, 8, 8 }, { 0, 2 ^ 40 }, {} } do
  local ok, t = pcall(dev.zeros, dev, s)
  if ok then
    for _, n in ipairs(names) do pcall(function() local r = t[n](t, 1) return type(r) == "userdata" and r:totable() end) end
    for _, f in ipairs {
      function() return t:reshape(-1, 0) end, function() return t:reshape(0, -1) end, function() return t:view(-1) end, function() return t:matmul(t) end,
      function() return t:linear(t) end, function() return t:cross_entropy(t:to("i64")) end, function() return t:embedding(t) end,
      function() return t:to("i64"):embedding(t) end, function() return t:conv2d(t) end, function() return t:max_pool2d(1) end,
      function() return t:scaled_dot_product_attention(t, t) end, function() return t:einsum("ab,bc->ac", t) end, function() return t:cat(t):stack(t) end,
      function() return t:index_select(1, dev:zeros { 3, dtype = "i64" }) end, function() return t:interpolate { size = 4 } end,
    } do pcall(function() return f():totable() end) end
  end
end
