-- waits for a signal that nobody sends, from very many fibers, with defaults that are huge
-- expect: error
local rille = require "rille"
local t = ("x"):rep(1000000)
for i = 1, 20 do t = { t, t } end
print(pcall(rille.signal, "s", { timeout = "1ms", default = t }))
print(pcall(rille.signal, "s", { timeout = "1ms", default = print }))
for i = 1, 3000 do rille.spawn("w", function() rille.signal("../" .. i .. "\0\n") end) if i % 100 == 0 then rille.sleep("1ms") end end
rille.signal("never")
