-- random ranges without numbers, steps of zero, values that do not fit, and lists in lists without end
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local cyclic = {}
cyclic[1] = cyclic
local deep = { 1 }
for i = 1, 100000 do deep = { deep } end
local wide = { 1 }
for i = 1, 7 do local w = {} for k = 1, 40 do w[k] = wide end wide = w end
for _, f in ipairs {
  function() return dev:tensor(cyclic) end, function() return dev:tensor(deep) end, function() return dev:tensor(wide) end,
  function() return dev:randint { 8, low = 5, high = 5 } end, function() return dev:randint { 8, low = 9, high = -9 } end,
  function() return dev:randint { 8, high = 0 } end, function() return dev:randint { 8, low = -2 ^ 63, high = 2 ^ 63 } end,
  function() return dev:arange { 0, 1, 0 } end, function() return dev:arange { 0, 1e300, 1e-300 } end, function() return dev:arange { 0 / 0 } end,
  function() return dev:arange { 0, -1 } end, function() return dev:linspace { 0, 1, -1 } end, function() return dev:linspace { 0, 1, 0 / 0 } end,
  function() return dev:randperm(-1) end, function() return dev:randperm(0 / 0) end, function() return dev:eye { -1 } end, function() return dev:zeros { 0 / 0 } end,
  function() return dev:zeros { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } end, function() return dev:zeros { dtype = "f128", 1 } end, function() return dev:seed(0 / 0) end,
  function() return dev:set_random_state({ 1 / 0, print, {} }) end, function() return dev:rand { 4 }:dropout(1 - 1e-17):dropout(0 / 0) end,
  function() return dev:full { 8, value = 0 / 0, dtype = "i64" } end, function() return dev:full { 8, value = 1e300, dtype = "u8" } end,
} do print(pcall(function() return f():sum():item() end)) end
