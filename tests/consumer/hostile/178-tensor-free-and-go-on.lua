-- frees tensors that are still needed: by pending operations, by views, by gradients, by compiled functions, by fibers that wait
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local a = dev:ones { 512, 512, requires_grad = true }
local b = a:matmul(a)
local view = b:narrow(1, 1, 2)
local loss = b:sum()
b:free()
a:free()
print(pcall(function() return view:totable() end), pcall(loss.backward, loss), pcall(loss.item, loss), pcall(b.free, b), pcall(a.free, a))
local w = dev:ones { 64, 64 }
local f = rille.compile(function(x) return x:matmul(w):sum() end)
local x = dev:ones { 64, 64 }
for i = 1, 3 do f(x):item() end
w:free()
print(pcall(function() return f(x):item() end))
local big = dev:ones { 1500, 1500 }
rille.spawn("reader", function() print(pcall(function() return big:matmul(big):matmul(big):sum():item() end)) end)
rille.spawn("killer", function() big:free() collectgarbage() big = dev:zeros { 1500, 1500 } end)
local m = rille.nn.linear(4, 4)
m.weight:free()
print(pcall(function() return m(dev:ones { 1, 4 }):sum():item() end), pcall(m.state, m), pcall(m.to, m, "bf16"))
