-- data sets of tensors with batches, crops and splits that are zero, negative, NaN or huge
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local images, one = dev:ones { 4, 1, 8, 8 }, dev:ones { 1, 1 }:expand(2 ^ 40, 1)
for _, v in ipairs { 0, -1, 0.5, 0 / 0, 1 / 0, 2 ^ 31, 2 ^ 62, {}, "x" } do
  for _, k in ipairs { "batch", "seed", "split", "padding", "crop" } do
    pcall(function()
      local d = rille.data.arrays({ images, images }, { [k] = v, flip = true })
      local x = d:next()
      d:validation(v)
      d:load_state({ cursor = v, epoch = v })
      return x:sum():item()
    end)
  end
end
print(pcall(function() return rille.data.arrays({ one }, { batch = 4 }):next():sum():item() end))
print(pcall(rille.data.arrays, {}), pcall(rille.data.arrays, { images, dev:ones { 5 } }))
rille.data.arrays({ images }, { batch = 2 ^ 30 }):next():sum():item()
