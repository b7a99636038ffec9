-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()
local optim = rille.optim

local base = tap.folder()

local function close(got, want, within) tap.ok(math.abs(got - want) <= (within or 1e-9), got .. " is not " .. want) end

-- A small model, its optimizer by `make`, and a compiled update.
local function training(make, scaled)
  local model = rille.nn.gpt { layers = 1, heads = 2, width = 16, context = 8, vocab = 16, tied = true, seed = 1 }
  local opt = make(model)
  local x = dev:tensor({ { 1, 2, 3, 4, 5, 6, 7, 8 } }, { dtype = "i64" })
  local y = dev:tensor({ { 2, 3, 4, 5, 6, 7, 8, 9 } }, { dtype = "i64" })
  local update = rille.compile(function(x, y)
    local loss = scaled and rille.autocast("f16", model, x):to("f32"):cross_entropy(y) or model(x):to("f32"):
      cross_entropy(y)
    if scaled then opt:scaled(loss):backward() else loss:backward() end
    opt:step()
    return loss
  end)
  return function() return update(x, y):item() end, model, opt
end

tap.test("every rule trains, compiled", function()
  local rules = {
    adam = function(m) return optim.adam(m:parameters(), { lr = 1e-2, weight_decay = 1e-3 }) end,
    adamw = function(m) return optim.adamw(optim.groups(m), { lr = 1e-2, betas = { 0.9, 0.95 } }) end,
    sgd = function(m) return optim.sgd(m, { lr = 0.3, momentum = 0.9, nesterov = true }) end,
    lion = function(m) return optim.lion(m:parameters(), { lr = 2e-3 }) end,
    muon = function(m) return optim.muon(m:parameters(), { lr = 0.02, adamw = { lr = 1e-2 } }) end,
    muon_rms = function(m) return optim.muon(m:parameters(), { lr = 1e-2, match_rms = true, precision = "f32",
      adamw = { lr = 1e-2 } }) end,
  }
  for name, make in pairs(rules) do
    local step = training(make)
    local first, last = step(), nil
    for _ = 1, 25 do last = step() end
    tap.ok(last < first - 0.5, ("%s: %g -> %g"):format(name, first, last))
  end
end)

tap.test("muon takes the hidden matrices, AdamW the rest", function()
  local _, model, opt = training(function(m) return optim.muon(m:parameters()) end)
  local kinds = {}
  for _, entry in ipairs(opt:state()) do
    local kind, name = entry.name:match("^(%a[%a_]*)%.(.+)$")
    if name then kinds[name] = kind end
  end
  tap.equal(kinds["blocks.1.attention.qkv.weight"], "momentum")
  tap.equal(kinds["blocks.1.fc.weight"], "momentum")
  tap.equal({ kinds["tokens.weight"], kinds.positions, kinds["blocks.1.fc.bias"] },
    { "exp_avg_sq", "exp_avg_sq", "exp_avg_sq" })
  tap.ok(tostring(opt):find("Optimizer muon of"), tostring(opt))
  local only = optim.muon(model:parameters(), { matrices = function(name) return name == "blocks.1.fc.weight" end })
  local n = 0
  for _, entry in ipairs(only:state()) do if entry.name:find("^momentum") then n = n + 1 end end
  tap.equal(n, 1)
end)

tap.test("groups: matrices decay, vectors do not", function()
  local _, model = training(function(m) return optim.sgd(m:parameters()) end)
  local groups = optim.groups(model, { weight_decay = 0.5 })
  tap.equal({ #groups, groups[1].weight_decay, groups[2].weight_decay }, { 2, 0.5, 0 })
  for _, p in ipairs(groups[1].parameters) do tap.equal(p.tensor:dim(), 2) end
  for _, p in ipairs(groups[2].parameters) do tap.equal(p.tensor:dim(), 1) end
  tap.equal(#groups[1].parameters + #groups[2].parameters, #model:parameters())
  local a, b = dev:tensor({ 1 }, { requires_grad = true }), dev:tensor({ 1 }, { requires_grad = true })
  local opt = optim.sgd({ { parameters = { a }, weight_decay = 0.5 }, { parameters = { b }, lr = 0.2 } }, { lr = 0.1 })
  opt:set_lr(0.05);   -- b keeps twice the rate
  (a + b):sum():backward()
  opt:step()
  close(a:detach():item(), 1 - 0.05 * 1.5, 1e-6)
  close(b:detach():item(), 1 - 0.1, 1e-6)
  tap.raises("invalid", "group 1: unknown option 'wd'", optim.sgd, { { parameters = { a }, wd = 1 } })
end)

tap.test("a state from before each parameter had a step of its own still loads", function()
  local a, b = dev:tensor({ 1 }, { requires_grad = true }), dev:tensor({ 1 }, { requires_grad = true })
  local opt = optim.adamw({ a, b })
  for i = 1, 5 do
    (i > 3 and a * b or a * 1):sum():backward()
    opt:step()
  end
  local function steps(o)
    local out = {}
    for _, entry in ipairs(o:state()) do
      if entry.name:find("^step") then out[entry.name] = entry.tensor:item() end
    end
    return out
  end
  tap.equal(steps(opt), { step = 5, ["step.1"] = 5, ["step.2"] = 2 })
  local kept = {}
  for _, entry in ipairs(opt:state()) do kept[entry.name] = entry.tensor end
  local same, old = optim.adamw({ a, b }), optim.adamw({ a, b })
  same:load_state(kept)
  tap.equal(steps(same), steps(opt))
  kept["step.1"], kept["step.2"] = nil, nil
  tap.equal(old:load_state(kept), { missing = {}, unexpected = {} })
  tap.equal(steps(old), { step = 5, ["step.1"] = 5, ["step.2"] = 5 })
  kept.step = nil
  tap.raises("state", "there is no 'step'", old.load_state, old, kept)
end)

tap.test("a parameter that comes late, in compiled steps", function()
  local function made() return dev:tensor({ 1 }, { requires_grad = true }) end
  local function trained(wrap)
    local a, b, c = made(), made(), made()
    local opt = optim.adamw({ a, b, c }, { lr = 0.1 })
    local without = wrap(function(x) (a * c * x):sum():backward() opt:step() end)
    local with = wrap(function(x) (a * b * c * x):sum():backward() opt:step() end)
    for i = 1, 5 do without(dev:tensor { i }) end
    for i = 1, 4 do with(dev:tensor { i }) end
    local out = {}
    for _, entry in ipairs(opt:state()) do
      if entry.name:find("^step") then out[#out + 1] = entry.tensor:item() end
    end
    tap.equal(out, { 9, 9, 4, 9 })
    return { a:item(), b:item(), c:item() }
  end
  tap.equal(trained(rille.compile), trained(function(fn) return fn end))
end)

tap.test("a group at rate 0 stays there, and what groups keep has names of its own", function()
  local a, b = dev:tensor({ 1 }, { requires_grad = true }), dev:tensor({ 1 }, { requires_grad = true })
  local opt = optim.adamw({ { parameters = { a }, lr = 0 }, { parameters = { b } } }, { lr = 0.1, weight_decay = 0 })
  opt:set_lr(0.05);
  (a + 3 * b):sum():backward()
  opt:step()
  close(a:detach():item(), 1, 0)
  close(b:detach():item(), 1 - 0.05, 1e-5)
  local names = {}
  for _, entry in ipairs(opt:state()) do
    tap.equal(names[entry.name], nil)
    names[entry.name] = entry.tensor
  end
  local other = optim.adamw({ { parameters = { a }, lr = 0 }, { parameters = { b } } }, { lr = 0.1 })
  other:load_state(opt:state())
  for _, entry in ipairs(other:state()) do tap.equal(entry.tensor:totable(), names[entry.name]:totable()) end
end)

tap.test("an average of half precision weights is what it was after an evaluation", function()
  local w = dev:tensor({ 1 }, { dtype = "bf16" }):requires_grad_()
  local ema = optim.ema({ w }, { decay = 0.999, warmup = false })
  rille.no_grad(function() w:fill_(2) end)
  ema:update()
  local before = ema:state()[1].tensor:totable()
  ema:apply(function() return w:item() end)
  tap.equal(ema:state()[1].tensor:totable(), before)
  close(w:detach():item(), 2, 0)
end)

tap.test("schedules", function()
  local at = optim.linear { lr = 1, steps = 100, warmup = 20 }
  close(at(10), 0.5) close(at(20), 1) close(at(60), 0.5) close(at(100), 0)
  at = optim.constant { lr = 2, warmup = 4 }
  close(at(1), 0.5) close(at(4), 2) close(at(1000), 2)
  at = optim.step_decay { lr = 1, every = 10 }
  close(at(10), 1) close(at(11), 0.1) close(at(21), 0.01)
  at = optim.step_decay { lr = 1, at = { 5, 7 }, factor = 0.5, warmup = 2 }
  close(at(1), 0.5) close(at(5), 1) close(at(6), 0.5) close(at(8), 0.25)
  at = optim.one_cycle { lr = 0.5, steps = 40 }   -- torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5, total_steps=40)
  close(at(1), 0.02) close(at(6), 0.22584443881441152) close(at(12), 0.5) close(at(21), 0.3830084870967576)
  close(at(40), 2e-6, 1e-12)
  at = optim.wsd { lr = 1, steps = 100, warmup = 10, decay = 20, floor = 0.1 }
  close(at(5), 0.5) close(at(10), 1) close(at(80), 1) close(at(90), 0.55) close(at(100), 0.1)
  close(optim.wsd({ lr = 1, steps = 100, decay = 16, shape = "sqrt" })(88), 0.5)
  tap.raises("invalid", "lr and steps are needed", optim.linear, { lr = 1 })
  tap.raises("invalid", "did you mean 'warmup'", optim.cosine, { lr = 1, steps = 2, warmpu = 1 })
  tap.raises("invalid", "a warmup of 30 steps out of 20", optim.cosine, { lr = 1, steps = 20, warmup = 30 })
  tap.raises("invalid", "give one of", optim.step_decay, { lr = 1 })
end)

tap.test("f16 with a loss scale: a step that overflows is left out, inside a compiled function", function()
  local step, model, opt = training(function(m)
    return optim.adamw(m:parameters(), { lr = 1e-2, loss_scale = { initial = 2 ^ 40, interval = 1000 } })
  end, true)
  local function scale()
    for _, entry in ipairs(opt:state()) do if entry.name == "loss_scale" then return entry.tensor:item() end end
  end
  local before = model.tokens.weight:detach():clone()
  local first = step()
  tap.equal(scale(), 2 ^ 39)                       -- 2^40 is infinite in f16
  tap.equal((model.tokens.weight:detach() - before):abs():max():item(), 0)
  for _ = 1, 40 do step() end
  tap.ok(scale() < 2 ^ 30 and scale() >= 2 ^ 8, "the scale settles, at " .. scale())
  for _ = 1, 20 do step() end
  tap.ok(step() < first - 0.5, "it learns")
  local plain = optim.sgd(model:parameters())
  tap.raises("state", "no loss scale", plain.scaled, plain, dev:tensor(1))
  tap.raises("invalid", "backoff", optim.sgd, model:parameters(), { loss_scale = { backoff = 2 } })
end)

tap.test("a model in bf16 trains by its f32 masters", function()
  local step, model, opt = training(function(m)
    return optim.adamw(m:to("bf16"):parameters(), { lr = 3e-3 })
  end)
  tap.equal(model.tokens.weight.dtype, "bf16")
  local first, last = step(), nil
  for _ = 1, 40 do last = step() end
  tap.ok(last < first - 0.5, first .. " -> " .. last)
  for _, entry in ipairs(opt:state()) do
    if entry.name == "master.tokens.weight" then
      tap.equal(entry.tensor.dtype, "f32")
      tap.equal(entry.tensor:to("bf16"):totable(), model.tokens.weight:totable())
    end
  end
  tap.raises("invalid", "floating", model.to, model, "i64")
end)

tap.test("an average of the weights: updated in the step, exchanged for evaluation", function()
  local w = dev:tensor({ 1 }, { requires_grad = true })
  local opt = optim.sgd({ w }, { lr = 0.1 })
  local ema = optim.ema({ w }, { decay = 0.5, warmup = false })
  local update = rille.compile(function(x)
    local loss = (w * x):sum()
    loss:backward()
    opt:step()
    ema:update()
    return loss
  end)
  local one, value, average = dev:ones { 1 }, 1, 1
  for _ = 1, 5 do
    update(one)
    value = value - 0.1
    average = 0.5 * average + 0.5 * value
  end
  close(ema:apply(function() return w:detach():item() end), average, 1e-6)
  close(w:detach():item(), value, 1e-6)
  tap.raises(nil, "inside", ema.apply, ema, function() error("inside") end)
  close(w:detach():item(), value, 1e-6)
  tap.raises("invalid", "from 0 to below 1", optim.ema, { w }, { decay = 1 })
  tap.raises("invalid", "it has: update", function() return ema:updaet() end)
end)

tap.test("averages, masters and loss scale are in checkpoints: what follows is the same bit for bit", function()
  local function fresh()
    local ema
    local step, model, opt = training(function(m)
      m:to("bf16")
      ema = optim.ema(m, { decay = 0.9 })
      return optim.muon(m:parameters(), { loss_scale = { interval = 3 } })
    end)
    -- training() does not scale; here the step does
    local x = dev:tensor({ { 1, 2, 3, 4 } }, { dtype = "i64" })
    local update = rille.compile(function(x)
      local loss = model(x):to("f32"):cross_entropy(x)
      opt:scaled(loss):backward()
      opt:unscale()
      rille.optim.clip_grad_norm(model:parameters(), 1)
      opt:step()
      ema:update()
      return loss
    end)
    return { model, opt, ema }, function() return update(x):item() end, step
  end
  local state, step = fresh()
  for _ = 1, 4 do step() end
  rille.checkpoint.save(state, { directory = base .. "/all", step = 4 })
  local want = {}
  for i = 1, 4 do want[i] = step() end
  local other, again = fresh()
  rille.checkpoint.load(other, base .. "/all")
  local got = {}
  for i = 1, 4 do got[i] = again() end
  tap.equal(got, want)
  for i, entry in ipairs(state[3]:state()) do
    tap.equal(other[3]:state()[i].tensor:totable(), entry.tensor:totable())
  end
  tap.raises("state", "another model", state[3].load_state, state[3], {})
end)

tap.done()
