-- stops the collector, then sets its pause and step to absurd values, and makes garbage
-- expect: timeout
pcall(collectgarbage, "stop")
pcall(collectgarbage, "setpause", 2 ^ 31 - 1)
pcall(collectgarbage, "setstepmul", 0)
pcall(collectgarbage, "step", 2 ^ 31)
pcall(collectgarbage, "setpause", -2 ^ 31)
while true do local t = { ("x"):rep(1000) .. tostring(math.random()) } end
