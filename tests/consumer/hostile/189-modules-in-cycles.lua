-- modules that contain themselves, that are very deep, and whose names and parts lie
-- expect: any
local rille = require "rille"
local nn = rille.nn
local m = nn.linear(2, 2)
m.self = m
m.list = { m, { m } }
print(pcall(m.parameters, m), pcall(m.state, m), pcall(m.to, m, "bf16"), pcall(tostring, m), pcall(m.count, m))
local deep = nn.linear(2, 2)
for i = 1, 100000 do deep = { deep } end
local holder = nn.linear(2, 2)
holder.deep = deep
print(pcall(holder.parameters, holder))
local shared = nn.linear(2, 2)
for i = 1, 40 do shared = nn.sequential { shared, shared } end
print(pcall(nn.class, "X", { init = function(self) while true do self[#self + 1] = nn.linear(64, 64) end end, forward = print }))
shared:parameters()
