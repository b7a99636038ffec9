-- run: ephemeral
-- The stand-in driver plays two GPUs. All that a model on the second one needs, the first being the default device.
local rille = require "rille"
local tap = require "tap"
local first, second = rille.device("cuda:0"), rille.device("cuda:1")
local nn = rille.nn

local folder = tap.folder()
local file = io.open(folder .. "/text", "wb")
file:write(("abc def "):rep(200))
file:close()

local function gpt(device)
  return nn.gpt { layers = 1, heads = 2, width = 16, context = 16, vocab = 256, dropout = 0.1, seed = 3 }:to(device)
end

local function bytes(device)
  return rille.data.bytes(folder .. "/text", { batch = 4, context = 16, seed = 5, device = device })
end

tap.test("there are two, and the first is the default", function()
  tap.ok(rille.device() == first)
  tap.equal(#rille.devices(), 3)
end)

tap.test("generate works where the model is, and leaves that device's random numbers as they were", function()
  second:seed(7)
  local before = second:random_state()
  local here, there = gpt(first):generate("abc", { length = 12 }), gpt(second):generate("abc", { length = 12 })
  tap.equal(there, here)
  tap.equal(second:random_state(), before)
end)

tap.test("data sets make their batches where they are asked to", function()
  for _, device in ipairs { second, "cuda:1" } do
    local x, y = bytes(device):next()
    tap.equal({ x.device, y.device }, { "cuda:1", "cuda:1" })
    tap.equal(bytes(device):validation(1).device, "cuda:1")
    local rows = rille.data.arrays({ first:ones { 8, 2 } }, { batch = 2, split = 0.5, device = device })
    tap.equal({ rows:next().device, rows:validation(1).device }, { "cuda:1", "cuda:1" })
  end
  tap.equal(bytes():next().device, "cuda:0")
  tap.equal(bytes("cuda:1"):next():totable(), bytes():next():totable())
  tap.raises("device", "no device 'cuda:5'", bytes, "cuda:5")
end)

tap.test("validation takes data from either to the model", function()
  local want = rille.train.validation(gpt(first), bytes(), { batches = 2 })
  for _, device in ipairs { first, second } do
    local got = rille.train.validation(gpt(second), bytes(device), { batches = 2 })
    tap.ok(math.abs(got - want) < 1e-6, ("%g, not %g"):format(got, want))
  end
end)

tap.test("averages are where their parameters are", function()
  local model = nn.linear(4, 2, { seed = 1 }):to(second)
  local ema = rille.optim.ema(model, { decay = 0.5 })
  for _, entry in ipairs(ema:state()) do tap.equal(entry.tensor.device, "cuda:1") end
  model.weight:detach():add_(1)
  ema:update()
  ema:apply(function() return model(second:ones { 1, 4 }):sum():item() end)
  ema:load_state(rille.optim.ema(nn.linear(4, 2, { seed = 2 })):state())
  tap.equal(ema:state()[2].tensor:totable(), nn.linear(4, 2, { seed = 2 }).weight:detach():totable())
end)

tap.test("a state goes to the device of what takes it", function()
  local model, path = nn.linear(4, 2, { seed = 1 }):to(second), folder .. "/linear.safetensors"
  local other = nn.linear(4, 2, { seed = 2 })
  model:load_state(other:state())
  tap.equal({ model.weight.device, model.weight:detach():totable() }, { "cuda:1", other.weight:detach():totable() })
  rille.data.save_tensors(path, nn.linear(4, 2, { seed = 3 }))
  model:load_state(path)
  tap.equal(model.weight:detach():totable(), nn.linear(4, 2, { seed = 3 }).weight:detach():totable())
end)

-- Dropout draws on the second device, `noise` on the first: both must go on where they were.
local function train(steps, directory, evaluate)
  first:seed(11)
  second:seed(12)
  local model = gpt(second)
  local opt, data = rille.optim.adamw(model, { lr = 5e-3 }), bytes("cuda:1")
  local ema = rille.optim.ema(model)
  local step = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    ema:update()
    return loss
  end)
  local noise = {}
  local result = rille.train { update = function(x, y)
    noise[#noise + 1] = first:rand { 1 }:item()
    return step(x, y)
  end, data = data, steps = steps, log_every = 1, evaluate = evaluate, evaluate_every = evaluate and 2 or nil,
    checkpoint = directory and { every = 4, state = { model, opt, data, ema },
      directory = folder .. "/" .. directory } or nil }
  return result, noise, model
end

tap.test("training on the second device resumes bit for bit, with the random numbers of both", function()
  local whole, noise = train(12)
  train(8, "resumed")
  local rest, more, model = train(12, "resumed", function()
    first:rand { 1 }:item()
    second:rand { 1 }:item()
  end)
  tap.equal(rest.losses, whole.losses)
  tap.equal(more, { noise[9], noise[10], noise[11], noise[12] })
  tap.equal(model:parameters()[1].tensor.device, "cuda:1")
end)

tap.done()
