-- Rille's side of agree.py. usage: rille run agree.lua --case NAME --dir FOLDER; the result is a table of plain data.
local rille = require "rille"

local args = rille.args { case = "", dir = "", weights = "" }
local cases = {}

local function path(name) return args.dir .. "/" .. name end

-- The logits of weights that Python wrote, under Hugging Face's names, and the weights again as Rille writes them.
function cases.gpt2(dev)
  local model = rille.nn.gpt2 { layers = 3, heads = 4, width = 64, context = 32, vocab = 199,
    weights = path("theirs.safetensors") }
  local given = rille.data.load_tensors(path("ids.safetensors"))
  local logits = rille.no_grad(function() return model(given.ids) end)
  rille.data.save_tensors(path("logits.safetensors"), { logits = logits })
  rille.data.save_tensors(path("ours.safetensors"), model, { metadata = { format = "pt" } })
  return { parameters = model:count() }
end

-- The models of models.py, each of the weights that it wrote.
function cases.models(dev)
  local nn, out = rille.nn, {}
  local function add(name, make, o, call)
    o.weights = path(name == "llama untied" and name or name .. ".safetensors")
    local model, given = make(o):eval(), rille.data.load_tensors(path(name .. ".inputs.safetensors"))
    out[name] = rille.no_grad(function() return call(model, given) end)
  end
  for name, more in pairs { untied = { rope_base = 500000 }, tied = { tied = true }, scaled = { rope_base = 100,
    rope_scaling = { rope_type = "llama3", factor = 8, low_freq_factor = 1, high_freq_factor = 4,
      original_max_position_embeddings = 64 } }, ["wide heads"] = { head_width = 16, kv_heads = 1 } } do
    local o = { layers = 2, heads = 4, kv_heads = 2, width = 32, hidden = 48, context = 64, vocab = 61, eps = 1e-3 }
    for key, v in pairs(more) do o[key] = v end
    add("llama " .. name, nn.llama, o, function(model, given) return model(given.ids) end)
  end
  for _, name in ipairs { "bert", "bert old names" } do
    add(name, nn.bert, { layers = 2, heads = 4, width = 32, context = 16, vocab = 61 }, function(model, given)
      return model(given.ids, { segments = given.segments, lengths = given.lengths })
    end)
  end
  for _, depth in ipairs { 18, 50 } do
    add("resnet " .. depth, nn.resnet, { depth = depth, width = 8, classes = 10 }, function(model, given)
      return model(given.images)
    end)
  end
  rille.data.save_tensors(path("models.safetensors"), out)
  return {}
end

function cases.published(dev)
  local model = rille.nn.gpt2 { weights = args.weights }
  local given = rille.data.load_tensors(path("ids.safetensors"))
  local logits = rille.no_grad(function() return model(given.ids) end)
  rille.data.save_tensors(path("logits.safetensors"), { logits = logits })
  return {}
end

-- Attention by weights that Python wrote, in f64, and its gradients.
function cases.attention(dev)
  local given, out = rille.data.load_tensors(path("attention.safetensors")), {}
  local options = { causal = { causal = true }, padded = { bias = false }, biased = {}, memory = { memory_width = 12 },
    groups = { causal = true, bias = false, fused = false, kv_heads = 2 } }
  for case, o in pairs(options) do
    local attn, state = rille.nn.attention(16, 4, o):to("f64"), {}
    for _, p in ipairs(attn:state()) do state[p.name] = given[case .. "." .. p.name] end
    attn:load_state(state)
    local x = given[case .. ".x"]:clone():requires_grad_()
    local y = attn(x, { memory = given[case .. ".memory"], mask = given[case .. ".mask"],
      lengths = case == "padded" and dev:tensor({ 3, 5 }, { dtype = "i64" }) or nil })
    y:square():sum():backward()
    out[case .. ".y"], out[case .. ".x.grad"] = y:detach(), x.grad
    for _, p in ipairs(attn:parameters()) do out[case .. "." .. p.name .. ".grad"] = p.tensor.grad end
  end
  rille.data.save_tensors(path("attended.safetensors"), out)
  return {}
end

-- Twelve steps of each rule, on the same loss, in f64 (Muon's torch products are bf16: there in f32, too).
function cases.optimizers(dev)
  local optim, out = rille.optim, {}
  local rules = {
    adam = function(p) return optim.adam(p, { lr = 0.01, betas = { 0.8, 0.95 }, weight_decay = 0.1 }) end,
    adamw = function(p) return optim.adamw(p, { lr = 0.01, weight_decay = 0.1 }) end,
    sgd = function(p) return optim.sgd(p, { lr = 0.01, momentum = 0.9, nesterov = true, weight_decay = 0.1 }) end,
    lion = function(p) return optim.lion(p, { lr = 0.01, weight_decay = 0.1 }) end,
    muon = function(p) return optim.muon(p, { lr = 0.01, weight_decay = 0.1, adamw = { lr = 0.01 } }) end,
    muon_rms = function(p) return optim.muon(p, { lr = 0.01, match_rms = true, adamw = { lr = 0.01 } }) end,
  }
  local start = rille.data.load_tensors(path("start.safetensors"))
  for name, make in pairs(rules) do
    local w = start.w:clone():requires_grad_()
    local b = start.b:clone():requires_grad_()
    local opt = make { { name = "w", tensor = w }, { name = "b", tensor = b } }
    local ema = optim.ema({ { name = "w", tensor = w } }, { decay = 0.9, warmup = false })
    for step = 1, 12 do
      local y = (start.x:matmul(w) + b):tanh()
      local loss = ((y - start.y) ^ 2):sum()
      loss:backward()
      if step > 6 then optim.clip_grad_norm({ w, b }, 0.5) end
      opt:step()
      ema:update()
    end
    out[name .. ".w"], out[name .. ".b"] = w:detach(), b:detach()
    out[name .. ".average"] = ema:apply(function() return w:detach():clone() end)
  end
  rille.data.save_tensors(path("ended.safetensors"), out)
  local rates = {}
  for name, rate in pairs {
    one_cycle = optim.one_cycle { lr = 0.5, steps = 50 },
    cosine = optim.cosine { lr = 0.5, steps = 50, warmup = 0, floor = 0 },
    step_decay = optim.step_decay { lr = 0.5, every = 7, factor = 0.5 },
    linear = optim.linear { lr = 0.5, steps = 50, warmup = 0, floor = 0.05 },
  } do
    rates[name] = {}
    for step = 1, 50 do rates[name][step] = rate(step) end
  end
  return { rates = rates }
end

return rille.step(args.case, { args = args }, function() return cases[args.case](rille.device()) end)
