-- run: ephemeral
-- Trains the models that trainings.py made, from weights that torch is given, and writes what became of them.
local rille = require "rille"
local dev = rille.device("cpu")
local nn, optim = rille.nn, rille.optim
local args = rille.args { dir = "" }
local T, started, ended, told = {}, {}, {}, {}
assert(loadfile(args.dir .. "/trainings_made.lua"))()(T, rille, dev, nn, optim)
local data = rille.data.load_tensors(args.dir .. "/data.safetensors")

local function train(at, t)
  dev:seed(at)
  local model = t.model()
  if t.dtype ~= "f32" then model:to(t.dtype) end
  for _, name in ipairs(t.frozen) do
    for _, p in ipairs(model:parameters()) do if p.name == name then p.tensor:requires_grad_(false) end end
  end
  for _, p in ipairs(model:state()) do started[at .. "." .. p.name] = p.tensor:detach():clone() end
  local opt = t.optimizer(model)
  local ema = t.ema and optim.ema(model, t.ema)
  local function update(x, y)
    local out = t.autocast and rille.autocast(t.autocast, model, x):to("f32") or model(x)
    local loss = t.loss(out, y)
    if t.scaled then opt:scaled(loss):backward() else loss:backward() end
    if t.clip then
      opt:unscale()
      optim.clip_grad_norm(model:parameters(), t.clip)
    end
    opt:step()
    if ema then ema:update() end
    return loss
  end
  if t.compiled then update = rille.compile(update, { accumulate = t.accumulate }) end
  local losses, rates = {}, {}
  for step = 1, t.steps do
    if t.schedule then
      rates[step] = t.schedule(step)
      opt:set_lr(rates[step])
    end
    for part = 1, t.accumulate do
      local name = ("%d.%d."):format(at, (step - 1) * t.accumulate + part)
      losses[#losses + 1] = update(data[name .. "x"], data[name .. "y"]):to("f64"):reshape(1)
    end
    if step % 3 == 0 then collectgarbage() end
  end
  for _, p in ipairs(model:state()) do ended[at .. ".model." .. p.name] = p.tensor:detach():clone() end
  if ema then for _, p in ipairs(ema:state()) do ended[at .. ".ema." .. p.name] = p.tensor:clone() end end
  local first = table.remove(losses, 1)
  ended[at .. ".losses"] = first:cat(losses, 1):clone()
  return rates
end

for at, t in ipairs(T) do
  local ok, rates = pcall(train, at, t)
  local why = not ok and tostring(type(rates) == "table" and rates.message or rates)
  told[at] = ok and { rates = rates, none = 0 } or { error = why }
end
rille.data.save_tensors(args.dir .. "/started.safetensors", started)
if next(ended) then rille.data.save_tensors(args.dir .. "/ended.safetensors", ended) end
return { told = told }
