-- Training a small GPT: the first losses on a device and on the CPU agree, and the same run gives the same bits; also
-- with dropout, whose numbers are the same on every device, and in bf16.
-- usage: rille run training.lua [--device cuda:0] [--dtype bf16 --dropout 0.1 --width 128 --heads 2 --bound 0.03]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args { device = "cpu", steps = 20, again = 10, layers = 2, heads = 4, width = 64,
  context = 32, batch = 8,
  dtype = "f32", dropout = 0,
  bound = 1e-3 }                                 -- how far a loss may be from the CPU's, there in the same type

local function losses_on(dev, ids, labels, steps, dropout)
  local model = rille.nn.gpt { layers = args.layers, heads = args.heads, width = args.width,
    context = args.context, vocab = 128, dropout = dropout or args.dropout, seed = 1 }
  dev:seed(4)
  model:to(dev)                                  -- it was made on rille.device(), whichever that is
  ids, labels = ids:to(dev), labels:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 1e-3 })
  local update = rille.compile(function(x, y)
    local logits = args.dtype == "f32" and model(x) or rille.autocast(args.dtype, model, x)
    local loss = logits:cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local losses = {}
  for i = 1, steps do losses[i] = update(ids, labels):item() end
  return losses
end

return rille.step("training", { args = args }, function()
  local cpu, dev = rille.device "cpu", rille.device(args.device)
  cpu:seed(3)
  local ids = cpu:randint { args.batch, args.context, low = 0, high = 128 }
  local labels = cpu:randint { args.batch, args.context, low = 0, high = 128 }
  local got, again = losses_on(dev, ids, labels, args.steps), losses_on(dev, ids, labels, args.again)
  for i = 1, args.again do
    if got[i] ~= again[i] then error(("step %d: loss %.17g, and %.17g when repeated"):format(i, got[i], again[i])) end
  end
  if not (got[args.steps] < got[1]) then error(("the loss does not fall: %g to %g"):format(got[1], got[args.steps])) end
  if args.dropout > 0 and losses_on(dev, ids, labels, 1, 0)[1] == got[1] then error("dropout drops nothing") end
  local figures = { { name = "steps with the same bits when repeated", value = args.again, unit = "" } }
  if dev ~= cpu then
    local wanted, worst = losses_on(cpu, ids, labels, args.steps), 0
    for i = 1, args.steps do worst = math.max(worst, math.abs(got[i] - wanted[i])) end
    if not (worst <= args.bound) then
      error(("losses differ from the CPU's by %g, at most %g"):format(worst, args.bound))
    end
    figures[#figures + 1] = { name = "largest difference of a loss to the CPU's", value = worst, unit = "" }
  end
  return { figures = figures, fallbacks = native.fallbacks(dev) }
end)
