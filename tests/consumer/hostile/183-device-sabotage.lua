-- leaves the process's device unusable for others: no memory, another seed, an emptied cache, a profiler left open
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
pcall(dev.limit_memory, dev, 1)
pcall(dev.seed, dev, 2 ^ 53)
pcall(dev.release_cache, dev)
pcall(dev.profile, dev, function() error("inside") end)
pcall(dev.check_numbers, dev, function() coroutine.yield() end)
local co = coroutine.wrap(function() return dev:profile(function() coroutine.yield() end) end)
co()
local co2 = coroutine.wrap(function() return rille.no_grad(function() coroutine.yield() end) end)
co2()
local co3 = coroutine.wrap(function() return rille.autocast("f16", function() coroutine.yield() end) end)
co3()
print(pcall(function() return dev:ones { 10 }:sum():item() end))
