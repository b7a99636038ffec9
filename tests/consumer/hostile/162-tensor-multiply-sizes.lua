-- operations whose results are far larger than their operands: tile, pad, one_hot, outer products, interpolation
-- expect: memory or timeout
local rille = require "rille"
local dev = rille.device("cpu")
local t, tries = dev:ones { 1000 }, {}
local function try(f) print(pcall(function() return f():sum():item() end)) end
try(function() return t:tile(2 ^ 30) end)
try(function() return t:repeat_interleave(2 ^ 30) end)
try(function() return t:pad({ 2 ^ 38, 2 ^ 38 }) end)
try(function() return t:to("i64"):one_hot(2 ^ 32) end)
try(function() return t:einsum("i,j,k,l->ijkl", t, t, t) end)
try(function() return t:view(1, 1, 10, 100):interpolate { size = { 2 ^ 20, 2 ^ 20 } } end)
try(function() return t:view(1, 1, 1000):conv1d(dev:ones { 1, 1, 1 }, nil, { padding = 2 ^ 38 }) end)
try(function() return t:view(1, 1, 10, 100):conv_transpose2d(dev:ones { 1, 1, 1, 1 }, nil, { stride = 2 ^ 20 }) end)
try(function() return t:rfft(2 ^ 38) end)
try(function() return t:view(1, 1000):multinomial(2 ^ 38, { replacement = true }) end)
try(function() return dev:randperm(2 ^ 36) end)
try(function() return dev:arange { 2 ^ 40 } end)
try(function() return dev:linspace { 0, 1, 2 ^ 40 } end)
try(function() return dev:eye { 2 ^ 20 } end)
dev:rope_angles { 2 ^ 30, 1024 }:sum():item()
