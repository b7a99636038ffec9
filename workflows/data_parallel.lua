-- One model on several machines: a cluster is rented, each of its instances is a rank of one communicator, and together
-- they train a small GPT on a text. Rank 0 writes the checkpoints. When a rank is lost, all restart from the last one.
--
--   rille run workflows/data_parallel.lua                                    two instances on this machine
--   rille run workflows/data_parallel.lua --count 4 --gpu H100 --provider aws --budget 40
--
-- On several machines the ranks must reach each other: over a private network, at --port and at ports chosen by the
-- system. Their connections are encrypted, and refused without the run's token; NCCL's between GPUs are neither.
local rille = require "rille"

local args = rille.args {
  count = 2, gpu = "cpu", provider = "local", ttl = "6h", budget = 5.00,   -- what to rent, how long, dollars at most
  data = "", steps = 200, batch = 8, lr = 3e-3, seed = 1, every = 50,      -- batch: of each rank
  port = 29500, attempts = 3, out = "out/",
}
local text = args.data ~= "" and args.data or rille.script_directory .. "/../docs"
rille.budget { limit = args.budget, alert = 0.8 }

local gang = rille.cluster("gang", { count = args.count, gpu = args.gpu, provider = args.provider, ttl = args.ttl,
  on_loss = "replace", setup = function(box) box:stage(text, "corpus") end })
local boxes = gang:boxes()

-- The address of rank 0, whose machine may be another one at the next attempt.
local function address(n)
  return boxes[1].provider == "local" and "127.0.0.1" or boxes[1]:call("address " .. n, function()
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

-- A lost rank ends the others, too: then all restart, at another port. Errors of the script are not retried. Each
-- checkpoint is also kept here, so that another machine of rank 0 continues from it.
local final = { invalid = true, config = true, state = true, cancelled = true, divergence = true, budget = true }

local function attempt(n)
  local host = address(n)
  return gang:each("train " .. n, function(box, index)
    return box:call("train " .. n, { checkpoint = rille.home, args = { rank = index - 1, world = args.count,
      token = token, address = host .. ":" .. args.port + n - 1, batch = args.batch, lr = args.lr, seed = args.seed,
      steps = args.steps, every = args.every } }, train)
  end)
end

local results
for n = 1, args.attempts do
  local ok, got = pcall(attempt, n)
  if ok then results = got break end
  local lost = type(got) == "table" and (got.code == "machine_lost" or not final[got.kind])
  if n == args.attempts or not lost then error(got, 0) end
  print(("attempt %d: %s; all ranks begin again"):format(n, got.message))
end
boxes[1]:get("checkpoints/latest", args.out)
gang:release()

local first, losses = results[1], {}
for i, result in ipairs(results) do losses[i] = result.loss end
print(("%d ranks: loss %.4f, validation %.4f; checkpoint in %s"):format(#results, first.loss, first.validation,
  args.out))
return { ranks = #results, loss = first.loss, losses = losses, validation = first.validation, device = first.device }
