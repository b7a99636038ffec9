-- strides, groups, windows, heads and pieces of zero and below, which divide by zero or never advance
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local x, w = dev:ones { 1, 4, 8, 8 }, dev:ones { 4, 4, 3, 3 }
for _, v in ipairs { 0, -1, 0.5, 0 / 0, 1 / 0, 2 ^ 63, -2 ^ 63 } do
  for _, f in ipairs {
    function() return x:conv2d(w, nil, { stride = v }) end, function() return x:conv2d(w, nil, { groups = v }) end,
    function() return x:conv2d(w, nil, { dilation = v }) end, function() return x:conv2d(w, nil, { padding = v }) end,
    function() return x:conv_transpose2d(w, nil, { stride = v, output_padding = v }) end, function() return x:max_pool2d(v) end,
    function() return x:max_pool2d(2, { stride = v }) end, function() return x:avg_pool2d({ v, 1 }, { ceil_mode = true, stride = v }) end,
    function() return x:adaptive_avg_pool2d(v) end, function() return x:adaptive_max_pool2d(v, 1) end, function() return x:group_norm(v) end,
    function() return x:chunk(v) end, function() return x:split(v) end, function() return x:split({ v, 1 - v }) end,
    function() return x:repeat_interleave(v) end, function() return x:tile(v, v) end, function() return x:topk(v) end,
    function() return x:interpolate { size = v } end, function() return x:interpolate { scale = v } end, function() return x:roll(v) end,
    function() return x:rfft(v) end, function() return x:irfft(v) end, function() return x:tril(v) end, function() return x:norm(v) end,
    function() return x:sum(v) end, function() return x:narrow(1, v, v) end, function() return x:select(v, v) end,
    function() return x:unsqueeze(v) end, function() return x:flatten(v, v) end, function() return x:permute(v, v, v, v) end,
    function() return x[{ { 1, 4, v } }] end, function() return x:to("i64"):one_hot(v) end, function() return x:multinomial(v, { replacement = true }) end,
  } do pcall(function() local t = f() return t:sum():item() end) end
end
