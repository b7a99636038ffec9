-- GPT-2 from scratch, or from published weights: rent an instance, stage tokens, train in bf16 with checkpoints that
-- survive the loss of the machine, fetch the weights, release.
--
--   rille run workflows/gpt2.lua --ids --data fineweb/train --validation fineweb/val --gpu H100 --spot --hours 8
--   rille run workflows/gpt2.lua --data corpus.txt --tokenizer gpt2/tokenizer.json --weights gpt2/model.safetensors
--   rille run workflows/gpt2.lua --layers 2 --heads 2 --width 64 --context 64 --batch 8 --steps 200 --dtype f32
--
-- --data: texts, encoded by --tokenizer or as bytes, or with --ids files of token ids as written by nanoGPT and llm.c;
-- without it, Rille's own documentation. The defaults are llm.c's for 124M: half a million tokens per step.
local rille = require "rille"

local args = rille.args {
  data = "", ids = false, validation = "", tokenizer = "", weights = "", size = "124M", layers = 0, heads = 0,
  width = 0, vocab = 0, context = 1024, batch = 64, accumulate = 8, steps = 19000, warmup = 700, lr = 6e-4,
  weight_decay = 0.1, dropout = 0.0, dtype = "bf16", seed = 1, every = 250, gpu = "any", spot = false, hours = 6,
  budget = 100.00, out = "gpt2.safetensors",
}
local own = args.data == ""
local text = own and rille.script_directory .. "/../docs" or args.data

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("trainer", { gpu = args.gpu, spot = args.spot, on_loss = "replace", ttl = args.hours .. "h" })
box:stage(text, "corpus")
for _, name in ipairs { "validation", "tokenizer", "weights" } do
  if args[name] ~= "" then box:stage(args[name], name == "tokenizer" and "tokenizer.json" or name) end
end

local result = box:call("train", { args = args, checkpoint = rille.home,
  sim = { duration = args.hours / 2 .. "h", checkpoint_every = "15m", result = { loss = 3.28, steps = args.steps,
    validation = 3.29, sample = "" } } }, function(args)
  local dev = rille.device()
  dev:seed(args.seed)
  local set = { batch = args.batch, context = args.context, seed = args.seed }
  local tokenizer = args.tokenizer ~= "" and rille.data.tokenizer("tokenizer.json") or nil
  local data, bytes
  if tokenizer or args.ids then
    set.tokenizer, set.validation = tokenizer, args.validation ~= "" and "validation" or nil
    data = rille.data.tokens("corpus", set)
  else
    data, bytes = rille.data.bytes("corpus", set), true
  end
  print(tostring(data))

  local vocab = args.vocab > 0 and args.vocab or bytes and 256 or args.weights ~= "" and 50257 or
    math.ceil((tokenizer and tokenizer.size or 50257) / 128) * 128       -- a multiple of 128 multiplies faster
  local shape = { size = args.size, vocab = vocab, context = args.context, dropout = args.dropout, seed = args.seed,
    weights = args.weights ~= "" and "weights" or nil }
  for _, name in ipairs { "layers", "heads", "width" } do if args[name] > 0 then shape[name] = args[name] end end
  local model = rille.nn.gpt2(shape):to(dev)
  local opt = rille.optim.adamw(rille.optim.groups(model, { weight_decay = args.weight_decay }),
    { lr = args.lr, betas = { 0.9, 0.95 } })
  print(tostring(model))

  -- `accumulate` batches that fit into memory make one step.
  local update = rille.compile(function(x, y)
    local loss = rille.autocast(args.dtype, model, x):to("f32"):cross_entropy(y)
    loss:backward()
    rille.optim.clip_grad_norm(model:parameters(), 1)
    opt:step()
    return loss
  end, { accumulate = args.accumulate })
  local function validation() return rille.train.validation(model, data, { batches = 20, dtype = args.dtype }) end
  local trained = rille.train {
    update = update, data = data, steps = args.steps,
    optimizer = opt, schedule = rille.optim.cosine { lr = args.lr, steps = args.steps,
      warmup = math.min(args.warmup, math.floor(args.steps / 10)) },
    evaluate_every = args.every,
    evaluate = function(step) print(("step %5d  validation loss %.4f"):format(step, validation())) end,
    checkpoint = { every = args.every, state = { model, opt, data } },
  }
  rille.data.save_tensors("model.safetensors", model)
  local sample = ""
  if tokenizer or bytes and vocab <= 256 then
    sample = model:generate("The ", { length = 64, temperature = 0.8, seed = args.seed, tokenizer = tokenizer })
  end
  return { device = dev.name, first_loss = trained.losses[1].loss, loss = trained.loss, steps = trained.steps,
    validation = validation(), rate = trained.rate, rate_unit = trained.rate_unit, peak_memory = dev:memory().peak,
    fallbacks = (update:explain() or {}).fallbacks, sample = sample }
end)

box:get("model.safetensors", args.out)
print(("loss %.4f, validation loss %.4f; weights in %s"):format(result.loss, result.validation, args.out))
if result.sample ~= "" then print("sample: " .. result.sample:gsub("%c", " "):gsub("[\128-\255]", "?")) end
box:release()
return result
