-- estimates of absurd models with deadlines that need more machines than there are atoms
-- expect: any
local rille = require "rille"
local offers = {}
for i = 1, 2000 do offers[i] = { provider = "p", id = "o" .. i, gpu = "A100", gpu_count = 8, price_per_hour = i % 3 == 0 and 0 / 0 or 1, vcpus = 1, memory_bytes = 1e12 } end
for _, v in ipairs { 0, -1, 0 / 0, 1 / 0, 1e300, 2 ^ 53, "1e308B", "9" .. ("0"):rep(1000) .. "B" } do
  for _, k in ipairs { "params", "layers", "width", "heads", "vocab", "context", "tokens", "epochs", "batch", "deadline", "gpus", "rows", "requests_per_second", "latency" } do
    pcall(function() return tostring(rille.estimate { model = k ~= "params" and "gpt2" or nil, tokens = "1B", offers = offers, [k] = v }) end)
  end
end
return tostring(rille.estimate { params = "1000000000B", tokens = "1e30", deadline = "1ms", offers = offers, rows = 2 ^ 53 })
