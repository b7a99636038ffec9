-- an error whose causes go a hundred thousand deep, and one that is its own cause
-- expect: error
local rille = require "rille"
local loop = { message = "loop", kind = "state" }
loop.cause = loop
print(pcall(rille.error, loop))
local ok, e = pcall(rille.error, { message = "self" })
pcall(function() e.cause = e end)
local chain = { message = "bottom" }
for i = 1, 100000 do chain = { message = "m", kind = "state", cause = chain } end
print(pcall(rille.error, { message = "top", cause = chain }))
if type(e) == "table" and e.cause == e then error(e, 0) end
rille.error(chain)
