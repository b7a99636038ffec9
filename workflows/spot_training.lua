-- Training on spot machines, which may be preempted at any time: rent the cheapest that fits and train. A machine with
-- a preemption notice, or a lost one, is replaced automatically, and the training continues from its last checkpoint.
--
--   rille simulate workflows/spot_training.lua --runs 1000 --deadline 12h     the expected cost, and how certain it is
--   rille plan workflows/spot_training.lua                                    what would be rented now
--   rille run workflows/spot_training.lua --gpu any --steps 200               a real run on this machine
--
-- The `sim` of a call describes it on a simulated machine; real runs ignore it.
local rille = require "rille"

local args = rille.args {
  data = "", gpu = "H100:8", steps = 1000, hours = 6, budget = 400, lr = 3e-3, out = "out/",
}
local text = args.data ~= "" and args.data or rille.script_directory .. "/../docs"

rille.budget { limit = args.budget, alert = 0.8 }

local function train(args)
  local dev = rille.device()
  local data = rille.data.bytes("corpus", { batch = 16, context = 32, seed = 1 })
  local model = rille.nn.gpt { layers = 2, heads = 4, width = 64, context = 32, seed = 1 }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = args.lr })
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local result = rille.train {
    update = update, data = data, steps = args.steps,
    checkpoint = { every = 50, state = { model, opt, data } },               -- continues from an existing checkpoint
  }
  return { loss = result.loss }
end

local ttl = args.hours + 2 .. "h"
local box = rille.rent("trainer", { gpu = args.gpu, spot = true, on_loss = "replace", ttl = ttl, min_ttl = "1h" })
box:stage(text, "corpus")
local trained = box:call("train", {
  args = args, checkpoint = rille.home,
  sim = { duration = args.hours .. "h", checkpoint_every = "15m", result = { loss = 1.31 } },
}, train)
box:get("checkpoints/latest", args.out)
print(("loss %.4f; checkpoint in %s"):format(trained.loss, args.out))
return trained
