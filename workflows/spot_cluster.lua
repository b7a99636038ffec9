-- One model on four spot machines, with data and checkpoints in an object store. Each machine fetches the data by
-- itself and is a rank of one communicator. The machines send their checkpoints to the store; no key of it reaches
-- them. When one is taken away, another takes its place, and all go on from the newest checkpoint there. At its end the
-- run lists what each machine has cost.
--
--   rille simulate workflows/spot_cluster.lua --runs 1000 --deadline 12h      the expected cost, and how certain it is
--   rille plan workflows/spot_cluster.lua                                     what would be rented now
--   rille run workflows/spot_cluster.lua --gpu H100:8 --provider aws --region us-east-1 \
--     --data s3://my-bucket/corpus/ --checkpoints s3://my-bucket/runs/gpt/
--
-- Run with the same --checkpoints again, it goes on from what is there: take another address to begin anew. The ranks
-- connect to each other at --port and at ports that the system chooses: they need a private network, so name one
-- provider and region. The `sim` of a call describes it on simulated machines; real runs ignore it.
local rille = require "rille"

local args = rille.args {
  data = "s3://my-bucket/corpus/", checkpoints = "s3://my-bucket/runs/gpt/", size = "20GB",   -- size: in simulations
  count = 4, gpu = "H100:8", provider = "", region = "", hours = 6, budget = 1500.00,  -- what to rent, dollars at most
  steps = 1000, batch = 8, lr = 3e-3, seed = 1, every = 50,                -- batch: of each rank
  port = 29500, attempts = 10,
}
local function given(word) return word ~= "" and word or nil end
rille.budget { limit = args.budget, alert = 0.8 }

local gang = rille.cluster("gang", { count = args.count, gpu = args.gpu, spot = true, on_loss = "replace",
  provider = given(args.provider), region = given(args.region), ttl = 2 * args.hours .. "h", min_ttl = "1h",
  setup = function(box) box:stage(args.data, "corpus", { sim = { size = args.size } }) end })
local boxes = gang:boxes()

-- The address of rank 0, whose machine may be another one at the next attempt.
local function address(n)
  return boxes[1].provider == "local" and "127.0.0.1"
    or boxes[1]:call("address " .. n, { sim = { duration = 1, result = "10.0.0.1" } }, function()
      return io.popen("hostname -I"):read("*a"):match "%S+"
    end)
end
-- The token that ranks must prove, drawn once per run.
local token = rille.step("token", function()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end)

-- At each rank: the training of one machine, with a communicator.
local function train(o)
  local dev = rille.device()
  local comm = rille.communicator { rank = o.rank, world = o.world, address = o.address, token = o.token }
  local data = rille.data.bytes("corpus", { batch = o.batch, context = 32, seed = o.seed })
  local model = rille.nn.gpt { layers = 2, heads = 4, width = 64, context = 32, seed = o.seed }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = o.lr })
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()                                                     -- then gradients are averaged over the ranks
    rille.optim.clip_grad_norm(model:parameters(), 1.0)
    opt:step()
    return loss
  end)
  local result = rille.train { update = update, data = data, steps = o.steps, communicator = comm,
    checkpoint = { every = o.every, state = { model, opt, data } } }       -- continues from an existing checkpoint
  local validation = rille.train.validation(model, data, { batches = 20, communicator = comm })
  comm:close()
  return { loss = result.loss, validation = validation, device = dev.name }
end

-- The calls of all attempts have one name, and so one place for checkpoints: the address with train/ behind it.
local function attempt(n)
  local host = address(n)
  return gang:each("train " .. n, function(box, index)
    return box:call("train", { checkpoint = args.checkpoints, args = { rank = index - 1, world = args.count,
      token = token, address = host .. ":" .. args.port + n - 1, batch = args.batch, lr = args.lr, seed = args.seed,
      steps = args.steps, every = args.every },
      sim = { duration = args.hours .. "h", checkpoint_every = "15m",
        result = { loss = 1.31, validation = 1.33, device = "simulated" } } }, train)
  end)
end

-- A lost rank ends the others, too: then all restart, at another port. Errors of the script are not retried.
local final = { invalid = true, config = true, state = true, cancelled = true, divergence = true, budget = true }
local results
for n = 1, args.attempts do
  local ok, got = pcall(attempt, n)
  if ok then results = got break end
  local lost = type(got) == "table" and (got.code == "machine_lost" or not final[got.kind])
  if n == args.attempts or not lost then error(got, 0) end
  print(("attempt %d: %s; all ranks begin again"):format(n, got.message))
end
gang:release()

local first, losses = results[1], {}
for i, result in ipairs(results) do losses[i] = result.loss end
print(("%d ranks: loss %.4f, validation %.4f; checkpoints below %s"):format(#results, first.loss, first.validation,
  args.checkpoints))
return { ranks = #results, loss = first.loss, losses = losses, validation = first.validation }
