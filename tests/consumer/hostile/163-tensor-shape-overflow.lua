-- shapes whose product overflows 64 bits to something small, which would be written beyond its memory
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local function try(f) local ok, e = pcall(function() local t = f() print(t:numel()) t:fill_(1) return t:sum():item() end) print(ok, tostring(e)) end
try(function() return dev:zeros { 2 ^ 32, 2 ^ 32 } end)
try(function() return dev:ones { 2 ^ 62, 2 } end)
try(function() return dev:ones { 2 ^ 61, 8, dtype = "f64" } end)
try(function() return dev:zeros { 2 ^ 21, 2 ^ 21, 2 ^ 21, 2 } end)
try(function() return dev:ones { 1 }:expand(2 ^ 32, 2 ^ 32):contiguous() end)
try(function() return dev:ones { 1, 1 }:tile(2 ^ 32, 2 ^ 32) end)
try(function() return dev:ones { 4 }:repeat_interleave(2 ^ 62) end)
try(function() return dev:ones { 4 }:pad({ 2 ^ 62, 2 ^ 62 }) end)
try(function() return dev:ones { 4 }:pad({ 2 ^ 63 - 1024, 1024 }) end)
try(function() return dev:zeros { 0, 2 ^ 62, 2 ^ 62 }:reshape(1) end)
try(function() return dev:ones { 16 }:narrow(1, 2, 2 ^ 63) end)
try(function() return dev:ones { 16 }:narrow(1, 2 ^ 63 - 1, 2) end)
try(function() return dev:ones { 16 }[{ { 1, 16, 2 ^ 62 } }] end)
try(function() return dev:ones { 1, 1, 8, 8 }:conv2d(dev:ones { 1, 1, 2, 2 }, nil, { dilation = 2 ^ 61 }) end)
try(function() return dev:ones { 1, 1, 8, 8 }:max_pool2d(2, { padding = 2 ^ 62, stride = 2 ^ 62 }) end)
try(function() return dev:from_bytes("", { 2 ^ 32, 2 ^ 32 }, "u8") end)
try(function() return dev:from_bytes("abcd", { -1, -4 }, "u8") end)
