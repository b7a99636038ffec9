-- lets a small model write without end, with stops, prompts and samplings that are odd
-- expect: error
local rille = require "rille"
local model = rille.nn.gpt { layers = 1, heads = 1, width = 8, context = 8 }
for _, o in ipairs { { temperature = 0 / 0 }, { temperature = -1 }, { top_k = -1 }, { top_k = 2 ^ 53 }, { top_p = 0 / 0 }, { stop = "" }, { seed = 0 / 0 }, { length = 0 / 0 },
  { length = -1 }, { tokenizer = { encode = function() while false do end return { -1 } end, size = -1 } } } do
  o.length = o.length or 2
  print(pcall(model.generate, model, "x", o))
  print(pcall(model.generate, model, { -1, 2 ^ 60, 0 / 0 }, o))
end
print(pcall(model.generate, model, ("x"):rep(100000), { length = 2 ^ 53, stop = ("y"):rep(1000000) }))
model:generate("x", { length = 1e9 })
