-- rille.train without an end, with training inside its update, its evaluation, its data and its schedule
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local function train(depth)
  local w = dev:ones { 4, requires_grad = true }
  local opt = rille.optim.sgd({ w }, { lr = 1e-9 })
  rille.train {
    steps = 2 ^ 53, log_every = 1, optimizer = opt, evaluate_every = 1, evaluate = function() train(depth + 1) end,
    schedule = function() return 1e-9 end, data = { next = function() return dev:ones { 4 } end },
    update = function(x) local loss = (w * x):sum() loss:backward() opt:step() if depth < 50 then train(depth + 1) end return loss end,
  }
end
train(1)
