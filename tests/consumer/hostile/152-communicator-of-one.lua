-- a communicator of one rank needs no address; gives it one, splits it for ever, and talks to itself
-- expect: any
local rille = require "rille"
print(pcall(rille.communicator, { rank = 0, world = 1, address = "0.0.0.0:29575", device = "cpu" }))
for _, v in ipairs { -1, 0, 0.5, 2 ^ 31, 0 / 0, 257 } do print(pcall(rille.communicator, { rank = v, world = v, device = "cpu" })) end
local dev, kept = rille.device("cpu"), {}
local c = rille.communicator { rank = 0, world = 1, device = "cpu" }
local x = dev:ones { 4 }
print(pcall(c.send, c, x, 0), pcall(c.recv, c, x, 0), pcall(c.sendrecv, c, x, 0, x, 0), pcall(c.broadcast, c, { x, x, x }, 7))
print(pcall(c.all_reduce, c, { x, {}, 1 }), pcall(c.all_gather, c, dev:ones {}), pcall(c.reduce_scatter, c, dev:zeros { 0 }))
for i = 1, 1e6 do kept[i] = c:split(i, 0 / 0 == 0 and 1 or -i) if i % 100 == 0 then rille.sleep("1ms") end end
