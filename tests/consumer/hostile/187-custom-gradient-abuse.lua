-- gradients of the script's own that recurse, return themselves, wait, loop and call backward inside backward
-- expect: timeout
local rille = require "rille"
local dev = rille.device("cpu")
local g
for _, back in ipairs {
  function(k, gy) return gy, gy, gy end, function() return nil end, function(k, gy) return gy:reshape(-1, 1) end, function(k, gy) rille.sleep("1ms") return gy end,
  function(k, gy) return gy:sum():item() end, function(k, gy) local y = g(dev:ones { 4, requires_grad = true }) y:sum():backward() return gy end,
  function(k, gy) k.loss:backward() return gy end, function(k, gy) gy:free() return gy end, function(k, gy) error(k) end, function() while true do end end,
} do
  g = rille.custom_grad { forward = function(kept, x) kept.x = x local y = x * 2 kept.loss = y return y end, backward = back }
  pcall(function()
    local x = dev:ones { 4, requires_grad = true }
    local loss = g(x):sum()
    loss:backward()
    return x.grad:totable()
  end)
end
