-- Training a small GPT: the first losses on a device and on the CPU agree, and the same run gives the same bits.
-- usage: rille run training.lua [--device cuda:0]
local rille = require "rille"

local args = rille.args { device = "cpu", steps = 20, again = 10, layers = 2, width = 64, bound = 1e-3 }

local function losses_on(dev, ids, labels, steps)
  local model = rille.nn.gpt { layers = args.layers, heads = 4, width = args.width, context = 32, vocab = 128,
    seed = 1 }
  model:to(dev)                                  -- it was made on rille.device(), whichever that is
  ids, labels = ids:to(dev), labels:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 1e-3 })
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
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
  local ids = cpu:randint { 8, 32, low = 0, high = 128 }
  local labels = cpu:randint { 8, 32, low = 0, high = 128 }
  local got, again = losses_on(dev, ids, labels, args.steps), losses_on(dev, ids, labels, args.again)
  for i = 1, args.again do
    if got[i] ~= again[i] then error(("step %d: loss %.17g, and %.17g when repeated"):format(i, got[i], again[i])) end
  end
  if not (got[args.steps] < got[1]) then error(("the loss does not fall: %g to %g"):format(got[1], got[args.steps])) end
  local figures = { { name = "steps with the same bits when repeated", value = args.again, unit = "" } }
  if dev ~= cpu then
    local wanted, worst = losses_on(cpu, ids, labels, args.steps), 0
    for i = 1, args.steps do worst = math.max(worst, math.abs(got[i] - wanted[i])) end
    if not (worst <= args.bound) then
      error(("losses differ from the CPU's by %g, at most %g"):format(worst, args.bound))
    end
    figures[#figures + 1] = { name = "largest difference of a loss to the CPU's", value = worst, unit = "" }
  end
  return { figures = figures }
end)
