-- The trainings of peer.py, by Rille: the same models, weights and batches. Prints one line of JSON.
-- usage: rille run train.lua --model gpt2 --weights FILE --steps 5 --warmup 3 --rate 3e-4 [--profile]
local rille = require "rille"

local args = rille.args { model = "gpt2", weights = "", steps = 5, warmup = 3, dtype = "f32", rate = 3e-4,
  profile = false }

local function counted(dev, shape)  -- 0, 1, 2, .. in that shape
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return dev:arange { n }:reshape(unpack(shape))
end

local cases = {}

local function gpt(sizes, batch, length, classes)
  return function(dev)
    local x = counted(dev, { batch, length }) * 7919
    x = x - (x / classes):to("i64") * classes
    local y = x * 31 + 7
    y = y - (y / classes):to("i64") * classes
    return sizes and rille.nn.gpt(sizes), x, y
  end
end

cases["gpt2"] = gpt({ layers = 12, heads = 12, width = 768, context = 1024, vocab = 50304, tied = true }, 4, 64, 50257)
cases["gpt-small"] = gpt({ layers = 2, heads = 4, width = 128, context = 64, vocab = 512, tied = true }, 4, 64, 512)

local function bert(options, batch, length, classes)
  local ids = gpt(nil, batch, length, classes)
  return function(dev)
    local _, x, y = ids(dev)
    options.dropout = 0
    return rille.nn.bert(options), x, y
  end
end

cases["bert"] = bert({}, 4, 128, 30522)
cases["bert-small"] = bert({ layers = 2, heads = 4, width = 64, context = 32, vocab = 512 }, 2, 16, 512)

cases["resnet50"] = function(dev)
  local i, y = counted(dev, { 8, 3, 224, 224 }), counted(dev, { 8 }) * 37
  local x = (i * i * 40503 + i * 2654435):remainder(65521) / 32760.5 - 1
  return rille.nn.resnet { zero_init_residual = true }, x, y - (y / 1000):to("i64") * 1000
end

local Mlp = rille.nn.class("Mlp", {
  init = function(self) self.fc1, self.fc2 = rille.nn.linear(784, 128), rille.nn.linear(128, 10) end,
  forward = function(self, x) return self.fc2(self.fc1(x):relu()) end,
})

cases.mlp = function(dev)
  local x = counted(dev, { 64, 784 })
  local y = counted(dev, { 64 })
  x = x - (x / 251):to("i64") * 251
  return Mlp(), x:to("f32") / 251, y - (y / 10):to("i64") * 10
end

return rille.step("train", { args = args }, function()
  local native = require "rille.native"
  local dev = rille.device()
  local model, x, y = cases[args.model](dev)
  if args.weights ~= "" then model:load_state(args.weights) end
  local opt = args.model == "resnet50"
    and rille.optim.sgd(model:parameters(), { lr = args.rate, momentum = 0.9, weight_decay = 1e-4 })
    or rille.optim.adamw(model:parameters(), { lr = args.rate, weight_decay = 0.01 })
  local update = rille.compile(function(a, b)
    local logits = args.dtype == "f32" and model(a) or rille.autocast(args.dtype, model, a)
    local loss = logits:to("f32"):cross_entropy(b)
    loss:backward()
    opt:step()
    return loss
  end)
  local losses, times = {}, {}
  for step = 1, args.warmup + args.steps do
    local began = native.clock()
    if args.model == "resnet50" then opt:set_lr(args.rate * math.min(1, step / 20)) end
    losses[step] = update(x, y):item()
    if step > args.warmup then times[#times + 1] = native.clock() - began end
  end
  if args.profile then print(dev:profile(function() return update(x, y):item() end)) end
  local peak = tonumber(io.open("/proc/self/status"):read("*a"):match("VmHWM:%s*(%d+)")) * 1024
  return { losses = losses, seconds = times, peak_bytes = dev:memory().peak, peak_rss_bytes = peak,
    plan = update:explain().operations }
end)
