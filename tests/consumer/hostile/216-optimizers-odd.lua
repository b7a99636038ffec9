-- optimizers over the same tensor twice, over views, over freed and huge parameters, with rates that are no numbers
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
for _, name in ipairs { "adamw", "adam", "sgd", "lion", "muon" } do
  for _, v in ipairs { 0 / 0, 1 / 0, -1, {}, "x" } do
    pcall(function()
      local w = dev:ones { 8, 8, requires_grad = true }
      local opt = rille.optim[name]({ { name = "w", tensor = w } }, { lr = v, betas = { v, v }, momentum = v, iterations = v, weight_decay = v, loss_scale = { initial = v, growth = v } })
      w:sum():backward()
      rille.optim.clip_grad_norm({ w }, v)
      opt:step()
      opt:load_state({ { name = "exp_avg.w", tensor = w:view(64) } }, { strict = false })
      return w:sum():item()
    end)
  end
end
local big = dev:ones { 6000000, requires_grad = true }
local opts = {}
for i = 1, 100 do opts[i] = rille.optim.adamw({ big }) rille.optim.ema({ { name = "b", tensor = big } }):update() big:narrow(1, 1, 1):detach():item() end
local o = rille.optim.muon({ { name = "h.weight", tensor = dev:ones { 1, 1, requires_grad = true } } }, { iterations = 2 ^ 53 })
error("all were made")
