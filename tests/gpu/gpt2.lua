-- Tokens per second of training GPT-2, in full size by default, through rille.compile; and, where the device's peak is
-- given, the share of it that the model's own FLOPs reach (6 N + 6 L C T per token).
-- usage: rille run gpt2.lua --device cuda:0 --dtype bf16 [--layers 12 --heads 12 --width 768 --context 1024 --batch 64
--        --peak 989]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args {
  device = "cpu", layers = 12, heads = 12, width = 768, context = 1024, vocab = 50304, batch = 64,
  dtype = "f32",                                 -- of the products; weights and losses stay in f32
  warmup = 3, steps = 10, peak = 0,              -- TFLOP/s
}

-- Seconds since this process was started, in hundredths, as the kernel counts them.
local function age()
  local function read(file)
    local f = assert(io.open(file))
    local text = f:read("*a")
    f:close()
    return text
  end
  local fields = {}
  for word in read("/proc/self/stat"):match(".*%) (.*)"):gmatch "%S+" do fields[#fields + 1] = word end
  return tonumber(read("/proc/uptime"):match "%S+") - tonumber(fields[20]) / 100
end

return rille.step("gpt2", { args = args }, function()
  local before, start = age(), native.clock()
  local dev = rille.device(args.device)
  dev:seed(5)
  local model = rille.nn.gpt { layers = args.layers, heads = args.heads, width = args.width, context = args.context,
    vocab = args.vocab, tied = true, seed = 1 }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 3e-4 })
  local update = rille.compile(function(x, y)
    local logits = args.dtype == "f32" and model(x) or rille.autocast(args.dtype, model, x)
    local loss = logits:cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  local x = dev:randint { args.batch, args.context, low = 0, high = args.vocab }
  local y = dev:randint { args.batch, args.context, low = 0, high = args.vocab }
  local times, ends, loss = {}, {}, nil
  for step = 1, args.warmup + args.steps do
    local began = native.clock()
    loss = update(x, y):item()
    ends[step] = before + native.clock() - start
    io.stderr:write(("call %d: loss %.6g, %.3f s\n"):format(step, loss, native.clock() - began))
    if step > args.warmup then times[#times + 1] = native.clock() - began end
  end
  table.sort(times)
  local rate = args.batch * args.context / times[math.ceil(#times / 2)]
  if loss ~= loss or loss > 2 * math.log(args.vocab) then error("the loss is " .. loss) end
  local figures = {
    { name = "tokens per second", value = rate, unit = "tokens/s" },
    { name = "from the process's start to the end of the first call", value = ends[1], unit = "s" },
    { name = "peak memory", value = dev:memory().peak / 1e6, unit = "MB" },
  }
  -- The third call is the first replay: its calls are made one by one, libraries and kernels of groups are there then.
  -- A GPU captures the fourth as a graph.
  for step, what in pairs { [3] = "first replay (call 3)", [4] = "second replay, captured (call 4)" } do
    if ends[step] then
      figures[#figures + 1] = { name = "from the process's start to the end of the " .. what, value = ends[step],
        unit = "s" }
    end
  end
  local plan = update:explain()
  if plan and plan.one_by_one then
    figures[#figures + 1] = { name = "launched one by one", value = plan.calls, unit = "calls: " .. plan.one_by_one }
  end
  if args.peak > 0 then
    local flops = 6 * model:count() + 6 * args.layers * args.width * args.context
    figures[#figures + 1] = { name = "model FLOPs of peak", value = rate * flops / args.peak / 1e12, unit = "" }
  end
  return { figures = figures, fallbacks = native.fallbacks(dev) }
end)
