-- Trains on a machine that is announced to be taken away, again and again; notice_loop.py announces it. Each step is a
-- line of the file `trace`. The losses are those of a calm run, bit for bit.
local rille = require "rille"
local args = rille.args { steps = 300, pause = 30, trace = "trace" }

local box = rille.rent("trainer", { provider = "local", ttl = "1h", on_loss = "replace" })
box:exec("corpus", { setup = true, argv = { "sh", "-c", "yes 'the moon is round and far ' | head -c 4000 > corpus" } })
local result = box:call("train", { args = args, checkpoint = rille.home }, function(args)
  local data = rille.data.bytes("corpus", { batch = 2, context = 8, seed = 3 })
  local model = rille.nn.gpt { layers = 1, heads = 1, width = 8, context = 8, seed = 1 }
  local opt = rille.optim.adamw(model:parameters(), { lr = 3e-3 })
  local function traced(step)
    local file = assert(io.open(args.trace, "a"))
    file:write(step, "\n")
    file:close()
    return 3e-3
  end
  local result = rille.train {
    data = data, steps = args.steps, log_every = 10, checkpoint = { every = 50, state = { model, opt, data } },
    optimizer = opt, schedule = traced,
    update = function(x, y)
      rille.sleep(args.pause / 1000)
      local loss = model(x):cross_entropy(y)
      loss:backward()
      opt:step()
      return loss
    end,
  }
  return { losses = result.losses, loss = result.loss }
end)
return result
