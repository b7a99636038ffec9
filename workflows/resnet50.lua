-- ResNet-50 on labelled images: rent an instance, stage the images, train in bf16, fetch the weights, release.
--
--   rille run workflows/resnet50.lua --data imagenet/train --gpu H100:1 --spot --hours 24
--   rille run workflows/resnet50.lua --depth 18 --width 8 --classes 4 --crop 24 --batch 16 --steps 60 --dtype f32
--
-- --data: a folder with a folder of JPEG and PNG files for each class, or of shards that `rille data build` made; or a
-- safetensors file with `images`, u8 [n, 3, height, width], at least as large as --crop, and `labels`, whole numbers
-- from 0 [n], which is mapped, not read into memory. Without it, patterns are drawn: stripes in four directions.
-- The recipe is the usual one: SGD with Nesterov's momentum, no weight decay of norms, label smoothing, a warmup and a
-- cosine schedule, an average of the weights for evaluation.
local rille = require "rille"

local args = rille.args {
  data = "", depth = 50, width = 64, classes = 1000, crop = 224, batch = 256, epochs = 90, steps = 0, lr = 0.1,
  weight_decay = 5e-5, smoothing = 0.1, ema = 0.999, split = 0.04, dtype = "bf16", seed = 1, every = 500, gpu = "any",
  spot = false, hours = 24, budget = 100.00, out = "resnet50.safetensors",
}

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("trainer", { gpu = args.gpu, spot = args.spot, on_loss = "replace", ttl = args.hours .. "h" })
if args.data ~= "" then box:stage(args.data, "images" .. (args.data:match("%.safetensors$") or "")) end

local result = box:call("train", { args = args, checkpoint = rille.home,
  sim = { duration = args.hours / 2 .. "h", checkpoint_every = "15m",
    result = { loss = 1.9, steps = 1, accuracy = 0.76 } } }, function(args)
  local dev = rille.device()
  dev:seed(args.seed)
  local set = { batch = args.batch, seed = args.seed, split = args.split, crop = args.crop, flip = args.data ~= "" }
  local data, raw = nil, true   -- raw: values from 0 to 255
  if args.data ~= "" and not args.data:find("%.safetensors$") then
    data, raw = rille.data.images("images", { batch = args.batch, seed = args.seed, split = args.split,
      size = args.crop }), false
  elseif args.data ~= "" then
    set.names = { "images", "labels" }
    data = rille.data.arrays("images.safetensors", set)
  else
    -- Stripes across, down, and along both diagonals, with noise, each slightly shifted.
    local n, size = 512, args.crop + 4
    local labels = dev:randint { n, high = math.min(4, args.classes) }
    local row = dev:arange { size }:to("f32"):reshape(1, size, 1)
    local column = dev:arange { size }:to("f32"):reshape(1, 1, size)
    local kind = labels:reshape(n, 1, 1):to("f32")
    local along = kind:eq(0):where(row, kind:eq(1):where(column, kind:eq(2):where(row + column, row - column)))
    local image = ((along + dev:rand { n, 1, 1 } * 6) * 1.2):sin() * 80 + 128
    image = (image:unsqueeze(2) + dev:randn { n, 3, size, size } * 30):clamp(0, 255):to("u8")
    data = rille.data.arrays({ image, labels }, set)
  end
  print(tostring(data))
  local rows = data:info().training_rows
  local steps = args.steps > 0 and args.steps or math.floor(args.epochs * rows / args.batch)

  local model = rille.nn.resnet { depth = args.depth, width = args.width, classes = args.classes,
    seed = args.seed, zero_init_residual = true }:to(dev)
  local rate = args.lr * args.batch / 256
  local opt = rille.optim.sgd(rille.optim.groups(model, { weight_decay = args.weight_decay }),
    { lr = rate, momentum = 0.9, nesterov = true })
  local ema = rille.optim.ema(model, { decay = args.ema })
  print(tostring(model))

  local function logits(x)
    if raw then x = (x:to("f32") - 118) / 58 end   -- to mean 0 and deviation 1
    return rille.autocast(args.dtype, model, x):to("f32")
  end
  local update = rille.compile(function(x, y)
    local loss = logits(x):cross_entropy(y, { label_smoothing = args.smoothing })
    loss:backward()
    opt:step()
    ema:update()
    return loss
  end)
  local guess = rille.compile(function(x, y) return logits(x):argmax(-1):eq(y):to("f32"):mean() end)
  local function accuracy()
    return ema:apply(function()
      model:eval()
      local total, batches = 0, data:validation_batches()
      rille.no_grad(function() for i = 1, batches do total = total + guess(data:validation(i)):item() end end)
      model:train()
      return total / batches
    end)
  end
  local trained = rille.train {
    update = update, data = data, steps = steps,
    optimizer = opt, schedule = rille.optim.cosine { lr = rate, steps = steps, floor = 0 },
    evaluate_every = args.every,
    evaluate = function(step) print(("step %5d  accuracy %.2f %%"):format(step, 100 * accuracy())) end,
    checkpoint = { every = args.every, state = { model, opt, ema, data } },
  }
  local last = accuracy()
  ema:apply(function() rille.data.save_tensors("model.safetensors", model) end)
  return { device = dev.name, first_loss = trained.losses[1].loss, loss = trained.loss, steps = trained.steps,
    accuracy = last, rate = trained.rate, rate_unit = "images/s", peak_memory = dev:memory().peak,
    fallbacks = (update:explain() or {}).fallbacks }
end)

box:get("model.safetensors", args.out)
print(("loss %.4f, accuracy %.2f %%; weights in %s"):format(result.loss, 100 * result.accuracy, args.out))
box:release()
return result
