-- Heat on a periodic plate, solved exactly in Fourier space: each wave decays at its own rate. Checked against the
-- formula for one wave, and against the conservation of heat.
--
--   rille run workflows/heat_fft.lua [--size 128] [--time 0.01] [--waves 3]
local rille = require "rille"

local args = rille.args { size = 128, time = 0.01, diffusivity = 1.0, waves = 3, gpu = "any", budget = 5.00 }

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("solver", { gpu = args.gpu, ttl = "1h" })

local result = box:call("solve", { args = args }, function(args)
  local dev, n = rille.device(), args.size
  local x = dev:arange { n, dtype = "f32" } * (2 * math.pi / n)
  -- A wave along each direction, a plateau, and a warm spot.
  local wave = (x * args.waves):sin()
  local spot = ((x - math.pi):pow(2) * -8):exp()
  local warm = wave:unsqueeze(1) * wave:unsqueeze(2) + spot:unsqueeze(1) * spot:unsqueeze(2) * 5 + 1

  -- Wave numbers in the order of the transform: 0, 1, .., -2, -1; only half of the last dimension.
  local k = dev:arange { n, dtype = "f32" }
  k = k - k:ge(n / 2):to("f32") * n
  local half = dev:arange { n / 2 + 1, dtype = "f32" }
  local fade = ((k:pow(2):unsqueeze(2) + half:pow(2):unsqueeze(1)) * (-args.diffusivity * args.time)):exp()
  local function after(field) return (field:rfft2() * fade:unsqueeze(-1)):irfft2(n) end

  local later = after(warm)
  local hottest, began = later:max():item(), dev:record()  -- the first call made plans; time the second one
  after(warm):max():item()
  local seconds = began:elapsed(dev:record())
  local alone = after(wave:unsqueeze(1) * wave:unsqueeze(2))
  local expected = math.exp(-2 * args.waves ^ 2 * args.diffusivity * args.time)
  local mean_before, mean_after = warm:mean():item(), later:mean():item()
  return { device = dev.name, mean_before = mean_before, mean_after = mean_after,
    lost = math.abs(mean_after / mean_before - 1), hottest = hottest, hottest_before = warm:max():item(),
    fading = alone:abs():max():item() / (wave:abs():max():item() ^ 2), expected = expected,
    rate = n * n / seconds, rate_unit = "cells/s", peak_memory = dev:memory().peak }
end)

print(("hottest point %.4f, then %.4f"):format(result.hottest_before, result.hottest))
print(("heat kept to %.1e; a wave of %d faded to %.6f, the formula says %.6f"):format(
  result.lost, args.waves, result.fading, result.expected))
box:release()
return result
