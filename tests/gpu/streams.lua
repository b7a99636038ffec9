-- Launches on streams: values where tensors are shared, and how much of their time two kernels of one block each are
-- side by side, when they share nothing. Times are the device's, between events.
-- usage: rille run streams.lua [--device cuda:0]
local rille = require "rille"

local args = rille.args { device = "cpu", turns = 2000000, rounds = 5 }

local source = [[
__global__ void turn(int turns, float* y) {
  float v = y[threadIdx.x];
  for (int i = 0; i < turns; ++i) v = v * 0.999f + 1.0f;
  y[threadIdx.x] = v;
}
]]
local adding = [[
__global__ void add_to(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
]]

return rille.step("streams", { args = args }, function()
  local dev = rille.device(args.device)
  local ok, turn = pcall(dev.kernel, dev, source)
  if not ok then
    if type(turn) == "table" and turn.kind == "device" then return { not_run = turn.message } end
    error(turn)
  end
  local add_to = dev:kernel(adding)
  local s, t = dev:stream(), dev:stream()

  -- What one wrote the others read, while what they were given before may still be on its way.
  local n = 1000000
  local x, y, z, one = dev:ones { n }, dev:zeros { n }, dev:zeros { n }, dev:ones { n }
  local on_s = add_to:bind { grid = math.ceil(n / 256), block = 256, stream = s }
  local on_t = add_to:bind { grid = math.ceil(n / 256), block = 256, stream = t }
  local want_y, want_z = 0, 0
  for i = 1, 50 do
    on_s(n, 1, x, y)
    on_t(n, 1, y, z)
    on_s(n, 2, x * 3, y)                           -- its memory is free as soon as s is past it
    x:add_(one)
    want_y = want_y + i
    want_z = want_z + want_y
    want_y = want_y + 6 * i
  end
  for name, pair in pairs { y = { y, want_y }, z = { z, want_z } } do
    local low, high = pair[1]:min():item(), pair[1]:max():item()
    if low ~= pair[2] or high ~= pair[2] then
      error(("%s is from %g to %g, not %g"):format(name, low, high, pair[2]))
    end
  end

  local a, b = dev:ones { 32 }, dev:ones { 32 }
  local function seconds(first, second)            -- of one kernel on each, from their common beginning
    dev:synchronize()
    local began = dev:record()
    first:wait(began)
    second:wait(began)
    turn:launch({ grid = 1, block = 32, stream = first }, args.turns, a)
    turn:launch({ grid = 1, block = 32, stream = second }, args.turns, b)
    return math.max(began:elapsed(first:record()), began:elapsed(second:record()))
  end
  local function median(first, second)
    local times = {}
    seconds(first, second)
    for i = 1, args.rounds do times[i] = seconds(first, second) end
    table.sort(times)
    return times[math.ceil(args.rounds / 2)]
  end
  local behind, beside = median(s, s), median(s, t)
  return { figures = {
    { name = "two kernels on one stream", value = behind * 1e3, unit = "ms" },
    { name = "two kernels on two streams", value = beside * 1e3, unit = "ms" },
    { name = "one stream's time, of two streams'", value = behind / math.max(beside, 1e-9), unit = "" },
  } }
end)
