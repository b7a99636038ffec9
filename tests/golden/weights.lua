-- Rille's side of weights_test.py: the logits of weights that Python wrote, and the weights again as Rille writes them.
local rille = require "rille"

local args = rille.args { model = "", weights = "", ids = "", out = "" }

return rille.step("logits", { args = args }, function()
  local o = { layers = 2, width = 16, context = 24, vocab = 40, weights = args.weights }
  local model
  if args.model == "gpt2" then
    o.heads = 2
    model = rille.nn.gpt2(o)
  else
    o.heads, o.kv_heads, o.hidden = 4, 2, 24
    model = rille.nn.llama(o)
  end
  local rows = {}
  for row in args.ids:gmatch("[^;]+") do
    rows[#rows + 1] = {}
    for id in row:gmatch("%d+") do table.insert(rows[#rows], tonumber(id)) end
  end
  local logits = rille.no_grad(function() return model:eval()(rille.device():tensor(rows, { dtype = "i64" })) end)
  rille.data.save_tensors(args.out, (rille.data.load_tensors(args.weights)), { metadata = { format = "pt" } })
  return { shape = logits:shape(), logits = logits:reshape { -1 }:totable() }
end)
