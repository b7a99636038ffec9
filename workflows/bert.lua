-- BERT's masked words: rent an instance, stage a text, train an encoder to predict masked words, fetch the weights,
-- release.
--
--   rille run workflows/bert.lua --data wiki.txt --tokenizer bert-tokens/tokenizer.json --gpu H100:1 --hours 24
--   rille run workflows/bert.lua --data wiki.txt --tokenizer .. --weights bert-base/model.safetensors --lr 5e-5
--   rille run workflows/bert.lua --layers 2 --heads 2 --width 64 --context 32 --batch 16 --steps 300 --dtype f32
--
-- --data: texts, encoded by --tokenizer (a byte-level one) or as bytes, or with --ids files of token ids; without it,
-- Rille's own documentation. As in the paper, 15 % of the positions are predicted; of those 80 % are masked, 10 % show
-- a random token, and 10 % are unchanged.
local rille = require "rille"

local args = rille.args {
  data = "", ids = false, tokenizer = "", weights = "", layers = 12, heads = 12, width = 768, context = 512,
  vocab = 30522, mask = 103, batch = 32, steps = 100000, lr = 1e-4, dropout = 0.1, dtype = "bf16", seed = 1,
  every = 500, gpu = "any", spot = false, hours = 24, budget = 100.00, out = "bert.safetensors",
}
local text = args.data ~= "" and args.data or rille.script_directory .. "/../docs"

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("trainer", { gpu = args.gpu, spot = args.spot, on_loss = "replace", ttl = args.hours .. "h" })
box:stage(text, "corpus")
if args.tokenizer ~= "" then box:stage(args.tokenizer, "tokenizer.json") end
if args.weights ~= "" then box:stage(args.weights, "weights") end

local result = box:call("train", { args = args, checkpoint = rille.home,
  sim = { duration = args.hours / 2 .. "h", checkpoint_every = "15m",
    result = { loss = 1.8, steps = args.steps, accuracy = 0.6 } } }, function(args)
  local dev = rille.device()
  dev:seed(args.seed)
  local set = { batch = args.batch, context = args.context, seed = args.seed }
  local bytes = args.tokenizer == "" and not args.ids
  if args.tokenizer ~= "" then set.tokenizer = "tokenizer.json" end
  local data = bytes and rille.data.bytes("corpus", set) or rille.data.tokens("corpus", set)
  local vocab, mask = bytes and 257 or args.vocab, bytes and 256 or args.mask
  print(tostring(data))

  local model = rille.nn.bert { layers = args.layers, heads = args.heads, width = args.width, context = args.context,
    vocab = vocab, dropout = args.dropout, seed = args.seed, weights = args.weights ~= "" and "weights" or nil }:to(dev)
  local opt = rille.optim.adamw(rille.optim.groups(model, { weight_decay = 0.01 }), { lr = args.lr })
  print(tostring(model))

  -- The model's input, and its targets: the token at the chosen positions, -100 (ignored) elsewhere.
  local function ask(x)
    local ids = x:to("i64")
    local chosen, fate = dev:rand(ids:shape()):lt(0.15), dev:rand(ids:shape())
    local shown = fate:lt(0.8):where(dev:full { value = mask, dtype = "i64" },
      fate:lt(0.9):where(dev:randint { ids:size(1), ids:size(2), high = vocab - 1 }, ids))
    return chosen:where(shown, ids), ids:masked_fill(chosen:logical_not(), -100)
  end
  local update = rille.compile(function(x)
    local seen, asked = ask(x)
    local loss = rille.autocast(args.dtype, model, seen):to("f32"):cross_entropy(asked)
    loss:backward()
    rille.optim.clip_grad_norm(model:parameters(), 1)
    opt:step()
    return loss
  end)
  -- The share of masked tokens that is predicted.
  local found = rille.compile(function(x)
    local seen, asked = ask(x)
    local right = rille.autocast(args.dtype, model, seen):argmax(-1):eq(asked):to("f32"):sum()
    return right / asked:ge(0):to("f32"):sum():maximum(1)
  end)
  local function accuracy()
    local batches, total = math.min(20, data:validation_batches()), 0
    model:eval()
    rille.no_grad(function()
      for i = 1, batches do
        local x = data:validation(i)
        total = total + found(x):item()
      end
    end)
    model:train()
    return total / batches
  end
  local trained = rille.train {
    update = function(x) return update(x) end, data = data, steps = args.steps,
    optimizer = opt, schedule = rille.optim.linear { lr = args.lr, steps = args.steps },
    evaluate_every = args.every,
    evaluate = function(step) print(("step %5d  %.2f %% found"):format(step, 100 * accuracy())) end,
    checkpoint = { every = args.every, state = { model, opt, data } },
  }
  rille.data.save_tensors("model.safetensors", model)
  return { device = dev.name, first_loss = trained.losses[1].loss, loss = trained.loss, steps = trained.steps,
    accuracy = accuracy(), rate = trained.rate, rate_unit = trained.rate_unit, peak_memory = dev:memory().peak,
    fallbacks = (update:explain() or {}).fallbacks }
end)

box:get("model.safetensors", args.out)
print(("loss %.4f, %.2f %% of the hidden found; weights in %s"):format(result.loss, 100 * result.accuracy, args.out))
box:release()
return result
