-- The smallest training: a two-layer network learns to read digits. The digits are drawn here, seven segments each,
-- shifted, faded and with noise, so that nothing has to be downloaded.
--
--   rille run workflows/mlp.lua [--steps 400] [--batch 64] [--noise 0.3] [--seed 1]
local rille = require "rille"

local args = rille.args { steps = 400, batch = 64, hidden = 128, noise = 0.3, lr = 3e-3, seed = 1, gpu = "any",
  budget = 5.00 }

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("trainer", { gpu = args.gpu, ttl = "1h" })

local result = box:call("train", { args = args }, function(args)
  local dev = rille.device()
  dev:seed(args.seed)
  -- Segments a to g of a 28 x 28 picture, as { row, column, height, width }; and the segments of each digit.
  local segments = { { 6, 9, 2, 10 }, { 6, 18, 8, 2 }, { 14, 18, 8, 2 }, { 21, 9, 2, 10 }, { 14, 9, 8, 2 },
    { 6, 9, 8, 2 }, { 13, 9, 2, 10 } }
  local lit = { "abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg" }
  local glyphs = dev:zeros { 10, 28, 28 }
  for digit, names in ipairs(lit) do
    for name in names:gmatch "." do
      local s = segments[name:byte() - 96]
      glyphs:select(1, digit):narrow(1, s[1], s[3]):narrow(2, s[2], s[4]):fill_(1)
    end
  end

  -- A batch of digits: each shifted by up to three pixels either way, faded, and with noise.
  local function batch(n)
    local labels = dev:randint { n, high = 10 }
    local down, right = dev:randint { n, 1, 1, high = 7 } - 3, dev:randint { n, 1, 1, high = 7 } - 3
    local row = dev:arange { 28 }:reshape(1, 28, 1) - down
    local column = dev:arange { 28 }:reshape(1, 1, 28) - right
    local place = (row:clamp(0, 27) * 28 + column:clamp(0, 27) + labels:reshape(n, 1, 1) * 784):reshape(n, 784)
    local ink = glyphs:reshape(7840):index_select(1, place:reshape(n * 784)):reshape(n, 784)
    return ink * (dev:rand { n, 1 } * 0.5 + 0.5) + dev:randn { n, 784 } * args.noise, labels
  end

  local model = rille.nn.mlp({ 784, args.hidden, 10 }, { seed = args.seed })
  local opt = rille.optim.adamw(model:parameters(), { lr = args.lr })
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local loss, began
  local unmeasured = math.floor(args.steps / 4)            -- these compile
  for step = 1, args.steps do
    loss = update(batch(args.batch))
    if step == unmeasured then began = dev:record() end
    if step % 50 == 0 then print(("step %4d  loss %.4f"):format(step, loss:item())) end
  end
  local rate = began and (args.steps - unmeasured) * args.batch / began:elapsed(dev:record())
  return rille.no_grad(function()
    local x, y = batch(1000)
    return { device = dev.name, loss = loss:item(), accuracy = model(x):argmax(-1):eq(y):to("f32"):mean():item(),
      rate = rate, rate_unit = "digits/s", peak_memory = dev:memory().peak }
  end)
end)

print(("reads %.1f %% of new digits"):format(100 * result.accuracy))
box:release()
return result
