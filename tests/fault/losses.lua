-- Works on a machine that is taken away again and again; loss_loop.py takes it. The result says that each machine was
-- set up once, and that the work went on from what was kept of it.
local rille = require "rille"
local args = rille.args { steps = 40, source = "data.txt" }

local box = rille.rent("box", { provider = "local", ttl = "1h", on_loss = "replace" })
box:stage(args.source, "data.txt")
box:exec("install", { setup = true, argv = { "sh", "-c", "cat data.txt >> installed" } })
local result = box:call("count", { args = args.steps, checkpoint = rille.home }, function(steps)
  local file = assert(io.open("installed"))
  local installed = file:read("*a")
  file:close()
  local at = { step = 0, sum = 0 }
  local state = { at = {
    state = function() return { step = at.step, sum = at.sum } end,
    load_state = function(_, kept) at.step, at.sum = kept.step, kept.sum end,
  } }
  if rille.checkpoint.exists("checkpoints") then rille.checkpoint.load(state, "checkpoints") end
  print("begins at " .. at.step)
  while at.step < steps do
    rille.sleep("25ms")
    at.step = at.step + 1
    at.sum = at.sum + at.step
    if at.step % 5 == 0 then rille.checkpoint.save(state, { directory = "checkpoints", step = at.step }) end
  end
  return { sum = at.sum, installed = installed }
end)
return result
