-- learning-rate schedules with absurd counts, whose functions might loop or divide by zero
-- expect: any
local rille = require "rille"
local odd = { 0, -1, 0 / 0, 1 / 0, 2 ^ 53, 1e-300 }
for _, n in ipairs { "cosine", "linear", "constant", "step_decay", "one_cycle", "wsd" } do
  for _, a in ipairs(odd) do
    for _, b in ipairs(odd) do
      local ok, f = pcall(rille.optim[n], { lr = a, steps = b, warmup = a, decay = b, every = a, factor = b, rise = a, start = b, last = a, floor = b, at = { a, b, a } })
      if ok then for _, s in ipairs(odd) do pcall(f, s) end end
    end
  end
end
return rille.optim.step_decay({ lr = 1, every = 1e-300, factor = 1 })(2 ^ 53)
