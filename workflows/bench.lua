-- Which GPU trains a model for the least money? Rents one machine after the other, trains the same GPT for some steps
-- on each, releases it, and ranks all offers by tokens per dollar. The measurements are stored in the home, so that
-- `rille offers --workload bench` uses them from then on.
--
--   rille run workflows/bench.lua --gpus T4,L4,A100 --budget 3         three machines, three dollars at most
--   rille run workflows/bench.lua --gpus A100,H100 --spot              on machines that may be preempted
--   rille run workflows/bench.lua --gpus cpu --layers 1 --width 32 --heads 1 --context 32     a trial on this machine
--
-- For your own model, replace `train` below by its training, or give it a name in its own script: rille.train {
-- workload = "NAME" } measures itself on every machine.
local rille = require "rille"

local args = rille.args {
  gpus = "any", provider = "any", spot = false, ttl = "20m", budget = 2.00,  -- what to try, how long, dollars in all
  layers = 12, heads = 12, width = 768, context = 1024, batch = 8,           -- a GPT of bytes, 85M parameters
  steps = 100, name = "bench",                                               -- the first five are not counted
}
rille.budget { limit = args.budget, alert = 0.8 }

local function train(args)
  local dev = rille.device()
  local file = assert(io.open("noise", "wb"))                                -- the speed does not depend on the data
  local number = 1
  for _ = 1, 64 do
    local bytes = {}
    for i = 1, 1024 do
      number = number * 48271 % 2147483647
      bytes[i] = string.char(number % 256)
    end
    file:write(table.concat(bytes))
  end
  file:close()
  local model = rille.nn.gpt { layers = args.layers, heads = args.heads, width = args.width, context = args.context,
    vocab = 256 }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 1e-4 })
  local data = rille.data.bytes("noise", { batch = args.batch, context = args.context, seed = 1 })
  local update = rille.compile(function(x, y)
    local loss
    if dev.kind == "cuda" then loss = rille.autocast("bf16", model, x):cross_entropy(y)
    else loss = model(x):cross_entropy(y) end
    loss:backward()
    opt:step()
    return loss
  end)
  rille.train { update = update, data = data, steps = args.steps, log_every = 0, model = model, workload = args.name }
  return true
end

-- Rents one machine and releases it in any case. Returns the reason if nothing was measured.
local function try(gpu)
  local ok, err = pcall(rille.scope, "bench " .. gpu, function()
    local box = rille.rent(gpu, { gpu = gpu, spot = args.spot, ttl = args.ttl, min_ttl = "5m",
      provider = args.provider ~= "any" and args.provider or nil })
    print(("%s: training on %s in %s"):format(gpu, box.provider, box.region))
    box:call("train", { args = args }, train)
    print(("%s: done for $%.4f"):format(gpu, box.spent))
  end)
  if ok then return end
  if type(err) ~= "table" or err.kind == "cancelled" or err.kind == "divergence" then error(err, 0) end
  print(("%s: %s"):format(gpu, err.message))
  return err.message
end

local failed, tried = {}, {}
for gpu in args.gpus:gmatch("[^,%s]+") do
  tried[#tried + 1], failed[gpu] = gpu, try(gpu)
end

-- Ranks the offers. GPUs that were not tried are estimated by their TFLOPs, and marked.
local ok, offers = pcall(rille.offers, { gpu = "any", rank = "tokens_per_dollar", workload = args.name,
  estimated = true })
if ok then
  for i = #offers, 11, -1 do offers[i] = nil end
  print(offers)
elseif offers.kind == "invalid" then print(offers.message)  -- nothing was measured on a GPU
else error(offers, 0) end
return { tried = tried, failed = failed }
