-- The main job, from nothing to a checkpoint: rent an instance, stage a text, train a byte-level GPT on it, fetch the
-- checkpoint, sample a line, release.
--
--   rille run workflows/quickstart.lua [--data FILE|FOLDER|URL] [--steps 1000] [--seed 1] [--out out/]
--
-- Without --data the text is Rille's own documentation. On one machine the same seed gives bit-equal losses, even if
-- the run is killed and resumed in between. docs/manual/quickstart.md explains every step.
local rille = require "rille"

local args = rille.args {
  data = "", steps = 1000, seed = 1, gpu = "any", budget = 5.00, out = "out/",
  layers = 2, heads = 4, width = 128, context = 32, batch = 32, lr = 3e-3, every = 100,
  log_every = 10,
}
local text = args.data ~= "" and args.data or rille.script_directory .. "/../docs"

rille.budget { limit = args.budget, alert = 0.8 }                        -- dollars, for this run
local box = rille.rent("trainer", { gpu = args.gpu, ttl = "6h" })
box:stage(text, "corpus")                                                -- checked and resumed; files, folders and URLs

local trained = box:call("train", { args = args, checkpoint = rille.home }, function(args)
  local dev = rille.device()                                             -- runs on the instance
  local data = rille.data.bytes("corpus", { batch = args.batch, context = args.context, seed = args.seed })
  local bigram = data:bigram()
  local model = rille.nn.gpt { layers = args.layers, heads = args.heads, width = args.width, context = args.context,
    seed = args.seed }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = args.lr, betas = { 0.9, 0.95 }, weight_decay = 0.1 })
  dev:seed(args.seed)
  print(("device: %s, %s"):format(dev.name, dev.description))
  print(tostring(data))
  print(tostring(model))
  print(("bigram model: %.4f nats per byte on the validation part"):format(bigram))

  local update = rille.compile(function(x, y)                            -- traced once, then replayed
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local result = rille.train {
    update = update, data = data, steps = args.steps,
    optimizer = opt, schedule = rille.optim.cosine { lr = args.lr, steps = args.steps },
    checkpoint = { every = args.every, state = { model, opt, data } }, log_every = args.log_every,
  }
  return { device = dev.name, description = dev.description, loss = result.loss, steps = result.steps, bigram = bigram,
    losses = result.losses, validation = rille.train.validation(model, data, { batches = 40 }) }
end)

print(("final loss %.9g after %d steps"):format(trained.loss, trained.steps))
print(("validation loss %.17g nats per byte; the bigram model has %.17g: %s"):format(trained.validation, trained.bigram,
  trained.validation < trained.bigram and "beaten" or "not beaten; give it more text or more steps"))

box:get("checkpoints/latest", args.out)

local line = box:call("sample", { args = args }, function(args)
  local model = rille.nn.gpt { layers = args.layers, heads = args.heads, width = args.width, context = args.context,
    seed = args.seed }
  rille.checkpoint.load({ model }, "checkpoints")
  return model:generate("The ", { length = 120, temperature = 0.7, seed = args.seed })
end)
print("sample: " .. line:gsub("%c", " "):gsub("[\128-\255]", "?"))
print("checkpoint in " .. args.out)
box:release()
return trained
