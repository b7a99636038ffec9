-- Train wherever there is capacity: this machine, a host of yours, a Slurm or Kubernetes cluster, a cloud. The script
-- names none of them. It compares the offers, rents the cheapest that fits, stages a text, trains a small GPT on it,
-- fetches the checkpoint, validates it, and releases.
--
--   rille run workflows/rent_anywhere.lua                                 the cheapest of all configured providers
--   rille run workflows/rent_anywhere.lua --provider slurm --gpu A100
--   rille run workflows/rent_anywhere.lua --gpu H100 --spot --budget 20
--   rille run workflows/rent_anywhere.lua --provider local --steps 50     a trial on this machine
--
-- Kill it at any point: the training continues on the instance, and `rille resume last` rejoins it.
-- docs/manual/rent-anywhere.md explains each line and how to configure a provider.
local rille = require "rille"

local args = rille.args {
  provider = "any", gpu = "any", spot = false, ttl = "6h", budget = 5.00,    -- what to rent, how long, dollars at most
  unchecked = false,                                                         -- also accept machines without their GPUs
  data = "", steps = 300, seed = 1, out = "out/",                            -- what to train on, and where to put it
}
local text = args.data ~= "" and args.data or rille.script_directory .. "/../docs"
rille.budget { limit = args.budget, alert = 0.8 }

-- Choose: all offers that fit, cheapest first.
local wanted = { gpu = args.gpu, spot = args.spot, provider = args.provider ~= "any" and args.provider or nil }
local offers, found = rille.offers(wanted), 0
for i, offer in ipairs(offers) do
  offers[i] = nil
  if offer.error then print(("%s cannot say: %s"):format(offer.provider, offer.error))
  elseif offer.note then print(("%s: %s"):format(offer.provider, offer.note))
  else
    found = found + 1
    if found <= 5 then offers[found] = offer end
  end
end
print(offers)
if found > #offers then print(("and %d more"):format(found - #offers)) end

-- Rent: the first offer; if it is gone, the next. A lost spot machine is replaced automatically.
wanted.ttl, wanted.gpu_check = args.ttl, not args.unchecked
local box = rille.rent("trainer", wanted)
print(("rented from %s in %s: %s, the cheapest of %d that fit"):format(box.provider, box.region,
  box.price and ("$%.2f per hour"):format(box.price) or "at a price that is not known", found))

-- Stage: verified by SHA-256; interrupted transfers resume.
box:stage(text, "corpus")

-- Train: the function is sent to the machine with its captured values, and continues there even if this process dies.
-- Each checkpoint is fetched when it is written.
local sizes = { layers = 2, heads = 4, width = 64, context = 32 }
local function network() return rille.nn.gpt(sizes) end
local function corpus(seed) return rille.data.bytes("corpus", { batch = 8, context = sizes.context, seed = seed }) end

local trained = box:call("train", { args = args, checkpoint = rille.home }, function(args)
  local dev = rille.device()                                                 -- a GPU, or the CPU
  print("training on " .. tostring(dev))
  local data, model = corpus(args.seed), network():to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 3e-3 })
  local update = rille.compile(function(x, y)                                -- traced once, then replayed
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local checkpoint = { every = 50, state = { model, opt, data } }
  local result = rille.train { update = update, data = data, steps = args.steps, checkpoint = checkpoint }
  return { loss = result.loss, steps = result.steps }
end)

-- Fetch and validate: read the checkpoint again, and measure it on the part of the text that was not used in training.
box:get("checkpoints/latest", args.out)
local validation = box:call("validate", { args = args }, function(args)
  local model = network()
  rille.checkpoint.load({ model }, "checkpoints")
  return rille.train.validation(model:to(rille.device()), corpus(args.seed), { batches = 20 })
end)

box:release()                                                                -- no more costs from here on
print(("loss %.4f after %d steps, validation loss %.4f; the checkpoint is in %s"):format(trained.loss, trained.steps,
  validation, args.out))
print(("it cost $%.4f on %s"):format(box.spent, box.provider))
return { loss = trained.loss, steps = trained.steps, validation = validation, provider = box.provider }
