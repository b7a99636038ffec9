-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

local base = tap.folder()

local function file(name, text)
  local f = assert(io.open(base .. "/" .. name, "wb"))
  f:write(text)
  f:close()
  return base .. "/" .. name
end

-- Text in which the next byte follows from the last two, so that a bigram model cannot know it.
local words, choice = {}, 1
for i = 1, 3000 do
  choice = choice * 48271 % 2147483647
  words[i] = choice % 2 == 0 and "abcx " or "cbay "
end
local corpus = file("corpus.txt", table.concat(words))

local function parts(seed, accumulate)
  local model = rille.nn.gpt { layers = 1, heads = 2, width = 16, context = 16, dropout = 0.1, seed = seed }:to(dev)
  local opt = rille.optim.adamw(model:parameters(), { lr = 5e-3 })
  local data = rille.data.bytes(corpus, { batch = 4, context = 16, seed = 3 })
  dev:seed(11)
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end, { accumulate = accumulate })
  return model, opt, data, update
end

local function train(steps, directory, extra, accumulate)
  local model, opt, data, update = parts(1, accumulate)
  local options = { update = update, data = data, steps = steps, log_every = 1, checkpoint = directory and
    { every = 5, state = { model, opt, data }, directory = base .. "/" .. directory } or nil }
  for k, v in pairs(extra or {}) do options[k] = v end
  return rille.train(options), model, data
end

tap.test("modules: shapes, names, calls", function()
  local layer = rille.nn.linear(3, 5)
  tap.equal(layer(dev:ones { 2, 3 }):shape(), { 2, 5 })
  tap.equal(rille.nn.linear(3, 5, { bias = false }):count(), 15)
  tap.equal(rille.nn.embedding(10, 4)(dev:arange { 3 }):shape(), { 3, 4 })
  tap.equal(rille.nn.layer_norm(4)(dev:randn { 2, 4 }):shape(), { 2, 4 })
  local model = rille.nn.gpt { layers = 2, heads = 2, width = 8, context = 6, vocab = 10 }
  tap.equal(model(dev:zeros { 3, 6, dtype = "i64" }):shape(), { 3, 6, 10 })
  local names = {}
  for i, p in ipairs(model:parameters()) do names[i] = p.name end
  tap.equal({ names[1], names[2], #names }, { "blocks.1.attention.out.bias", "blocks.1.attention.out.weight",
    2 * 12 + 5 })
  tap.ok(tostring(model):find("^Gpt: %d+ parameters$"), tostring(model))
end)

tap.test("the same seed makes the same model, whatever was drawn before", function()
  local function first(seed) return rille.nn.gpt { layers = 1, heads = 1, width = 4, context = 4,
    seed = seed }:parameters()[4].tensor:totable() end
  local a = first(5)
  dev:randn { 10 }
  tap.equal(first(5), a)
  tap.ok(first(6)[1][1] ~= a[1][1])
end)

tap.test("classes of users", function()
  local Mlp = rille.nn.class("Mlp", {
    init = function(self, o) self.fc, self.out = rille.nn.linear(o.width, 4), rille.nn.linear(4, 1) end,
    forward = function(self, x) return self.out(self.fc(x):relu()) end,
  })
  local mlp = Mlp { width = 3 }
  tap.equal(mlp(dev:ones { 2, 3 }):shape(), { 2, 1 })
  tap.equal(#mlp:parameters(), 4)
  tap.equal(mlp:parameters()[1].name, "fc.bias")
end)

tap.test("dropout works while training only, also compiled", function()
  local drop = rille.nn.class("Drop", { init = function(self) self.d = rille.nn.dropout(0.5) end,
    forward = function(self, x) return self.d(x) end })()
  local f = rille.compile(function(x) return drop(x):sum() end)
  local x = dev:ones { 999 }
  for _ = 1, 3 do tap.ok(f(x):item() ~= 999) end
  drop:eval()
  for _ = 1, 3 do tap.equal(f(x):item(), 999) end
  drop:train()
  tap.ok(f(x):item() ~= 999)
end)

tap.test("sgd finds the minimum of a parabola", function()
  local x = dev:tensor({ 5 }, { requires_grad = true })
  local opt = rille.optim.sgd({ x }, { lr = 0.1, momentum = 0.5 })
  for _ = 1, 60 do
    local loss = ((x - 2) ^ 2):sum()
    loss:backward()
    opt:step()
  end
  tap.ok(math.abs(x:detach():item() - 2) < 1e-3)
end)

tap.test("gradients are clipped; schedules rise and fall", function()
  local x = dev:tensor({ 3, 4 }, { requires_grad = true })
  local loss = (x * x):sum()
  loss:backward()
  tap.equal(rille.optim.clip_grad_norm({ x }, 1):item(), 10)
  tap.ok(math.abs(x.grad:totable()[1] - 0.6) < 1e-4)
  rille.optim.clip_grad_value({ x }, 0.7)
  tap.ok(math.abs(x.grad:totable()[1] - 0.6) < 1e-4 and math.abs(x.grad:totable()[2] - 0.7) < 1e-6)
  tap.raises("invalid", "clip_grad_value: a limit of 0", function() rille.optim.clip_grad_value({ x }, 0) end)
  local at = rille.optim.cosine { lr = 1, steps = 100, warmup = 10 }
  tap.ok(at(5) == 0.5 and at(10) == 1 and math.abs(at(100) - 0.1) < 1e-9 and at(50) < at(20))
end)

tap.test("training lowers the loss below the bigram", function()
  local result, model, data = train(150, nil, { log_every = 50 })
  tap.equal(#result.losses, 4)
  tap.ok(result.loss < result.losses[1].loss / 3, "the loss falls to " .. result.loss)
  tap.ok(rille.train.validation(model, data, { batches = 5 }) < data:bigram(), "validation beats the bigram")
  local text = model:generate("abc", { length = 20, seed = 4 })
  tap.equal(#text, 23)
  tap.equal(model:generate("abc", { length = 20, seed = 4 }), text)
end)

tap.test("20 steps, and 10 + restart from the checkpoint + 10, have the same losses bit for bit", function()
  local whole = train(20)
  local ten = train(10, "resumed")
  local rest = train(20, "resumed")
  tap.equal(#rest.losses, 20)
  tap.equal(rest.losses, whole.losses)
  tap.equal(ten.loss, whole.losses[10].loss)
  tap.equal(train(20, "resumed").loss, whole.loss)
end)

tap.test("a training that continues on another device or number of threads warns that bits may differ", function()
  local random = require "rille.tools.random"
  local state, said, print_ = random.state(), {}, print
  local function restored()
    print = function(line) said[#said + 1] = line end
    random.restore(state)
    print = print_
    return table.concat(said)
  end
  tap.equal(restored(), "")
  state.made_on = "a card, 3 threads"
  tap.ok(restored():find("and was 'a card, 3 threads': from here on results are equal up to rounding", 1, true))
end)

tap.test("steps of several batches: checkpoints lie between updates", function()
  local whole, _, data = train(10, nil, nil, 2)
  local _, _, single = train(20)
  tap.equal(data:state().cursor, single:state().cursor)
  train(5, "parts", nil, 2)
  local rest = train(10, "parts", nil, 2)
  tap.equal(rest.losses, whole.losses)
  tap.equal(rest.loss, whole.loss)
end)

tap.test("stopped between checkpoints, it goes on from the last one, and evaluation changes nothing", function()
  local whole = train(20)
  tap.raises("io", "pulled the plug", train, 20, "stopped", { evaluate_every = 13, evaluate = function(step)
    dev:randn { 3 }:sum():item()
    rille.error { kind = "io", message = "pulled the plug" }
  end })
  local rest = train(20, "stopped", { evaluate_every = 3, evaluate = function() dev:randn { 3 }:sum():item() end })
  tap.equal(rest.losses, whole.losses)
end)

tap.test("the step's checkpoint is there before it is evaluated, also where that fails", function()
  local whole = train(20)
  tap.raises("memory", "no room", train, 20, "unevaluated", { evaluate_every = 10, evaluate = function(step)
    rille.error { kind = "memory", message = "no room" }
  end })
  local model, opt, data = parts(2)
  tap.equal(rille.checkpoint.load({ model, opt, data }, base .. "/unevaluated").step, 10)
  tap.equal(train(20, "unevaluated").losses, whole.losses)
end)

tap.test("a damaged checkpoint is passed over for the one before it", function()
  local whole = train(20)
  train(10, "torn")
  local f = assert(io.open(base .. "/torn/step-00000010/model.safetensors", "r+b"))
  f:seek("set", 5000)
  f:write("torn")
  f:close()
  tap.equal(train(20, "torn").losses, whole.losses)
end)

tap.test("where every checkpoint is damaged, the training says so, and leaves what is there", function()
  train(10, "ruined")
  local whole = {}
  for _, step in ipairs { 5, 10 } do
    local path = ("%s/ruined/step-%08d/model.safetensors"):format(base, step)
    local f = assert(io.open(path, "rb"))
    whole[path] = f:read(100)
    f:close()
    f = assert(io.open(path, "wb"))
    f:write(whole[path])
    f:close()
  end
  tap.ok(rille.checkpoint.exists(base .. "/ruined"))
  local err = tap.raises("integrity", "there is no good checkpoint in", train, 20, "ruined")
  for path, text in pairs(whole) do
    local f = assert(io.open(path, "rb"))
    tap.equal(f:read("*a"), text)
    f:close()
  end
end)

tap.test("a checkpoint that cannot be written is an io error; the one before stays good", function()
  local first = train(5, "full")
  os.execute("chmod 500 " .. base .. "/full")
  local blocked = not io.open(base .. "/full/probe", "w")
  if blocked then
    tap.raises("io", "", train, 20, "full")
  else  -- root writes everywhere: make the name of the next checkpoint unusable instead
    os.remove(base .. "/full/probe")
    file("plain", "no directory")
    tap.raises("io", "", train, 20, "plain/below")
  end
  os.execute("chmod 700 " .. base .. "/full")
  tap.equal(train(20, "full").losses, train(20).losses)
  tap.equal(first.steps, 5)
end)

tap.test("of very many logged losses every second one is kept, and always the last", function()
  local data = rille.data.bytes(corpus, { batch = 1, context = 1 })
  local one = dev:tensor(1)
  local result = rille.train { data = data, steps = 2500, log_every = 1, update = function() return one end }
  tap.equal({ #result.losses, result.losses[2].step, result.losses[#result.losses].step }, { 1500, 3, 2500 })
end)

tap.test("every preemption notice saves a checkpoint, also one after a notice that was withdrawn", function()
  local model, opt, data, update = parts(1)
  local step, before = 0, rille.preempting
  rawset(rille, "preempting", function()
    step = step + 1
    if step == 3 or step == 4 then return 100 end      -- one notice, seen twice
    if step == 7 then return 100 end                   -- after it was withdrawn
    if step == 8 then return 4000 end                  -- for a later time
  end)
  local ok, err = pcall(rille.train, { update = update, data = data, steps = 10, log_every = 0,
    checkpoint = { every = 100, keep = 10, state = { model, opt, data }, directory = base .. "/notices" } })
  rawset(rille, "preempting", before)
  assert(ok, err)
  local kept = {}
  for name in io.popen("ls '" .. base .. "/notices'"):lines() do kept[#kept + 1] = name:match("^step%-0*(%d+)$") end
  tap.equal(table.concat(kept, " "), "3 7 8 10")
end)

tap.test("checkpoints are kept by the rule, and `latest` is the newest", function()
  train(20, "kept")
  local model, opt, data = parts(2)
  local step = rille.checkpoint.load({ model, opt, data }, base .. "/kept").step
  tap.equal(step, 20)
  local list = io.popen("cd " .. base .. "/kept && ls -d step-* && readlink latest"):read("*a")
  tap.equal(list, "step-00000010\nstep-00000015\nstep-00000020\nstep-00000020\n")
end)

tap.test("a checkpoint of another model is refused", function()
  train(5, "other")
  local other = rille.nn.gpt { layers = 2, heads = 2, width = 16, context = 16 }
  tap.raises("state", "blocks.2", rille.checkpoint.load, { other }, base .. "/other")
  local data = rille.data.bytes(corpus, { batch = 4, context = 8, seed = 3 })
  tap.raises("state", "context", rille.checkpoint.load, { data }, base .. "/other")
  -- Both shapes, and where a training that did not ask for it has found the checkpoint.
  local wide = rille.nn.gpt { layers = 1, heads = 2, width = 24, context = 16 }
  local err = tap.raises("state", " in the state and ", rille.train, { update = print, data = data, steps = 9,
    checkpoint = { state = { wide }, directory = base .. "/other" } })
  tap.ok(err.hint:find("of a checkpoint in '" .. base .. "/other'", 1, true) and err.hint:find "begin anew", err.hint)
end)

tap.test("mistakes of new users", function()
  tap.raises("invalid", "did you mean 'steps'", rille.train, { update = print, data = {}, stesp = 3 })
  tap.raises("invalid", "data is missing", rille.train, { update = print, steps = 3 })
  local err = tap.raises("invalid", "rille.train: data = {}: it has no method next", rille.train,
    { update = print, data = {}, steps = 3 })
  tap.ok(err.hint:find("rille.data.bytes", 1, true))
  tap.raises("invalid", "data = 5: it has no method next", rille.train, { update = print, data = 5, steps = 3 })
  tap.raises("invalid", "did you mean 'layers'", rille.nn.gpt, { layres = 2 })
  tap.raises("invalid", "context is needed", rille.nn.gpt, { layers = 1, heads = 1, width = 4 })
  tap.raises("invalid", "cannot be shared among heads", rille.nn.gpt, { layers = 1, heads = 3, width = 4, context = 4 })
  tap.raises("invalid", "did you mean 'lr'", rille.optim.adamw, rille.nn.linear(2, 2):parameters(), { lrr = 1 })
  tap.raises("invalid", "list of parameters is empty", rille.optim.adamw, {})
  tap.raises("io", "nowhere.txt", rille.data.bytes, base .. "/nowhere.txt")
  tap.raises("invalid", "did you mean 'batch'", rille.data.bytes, corpus, { bach = 1 })
  tap.raises("invalid", "batch = 0", rille.data.bytes, corpus, { batch = 0 })
  local data = rille.data.bytes(corpus, { batch = 2, context = 8 })
  tap.raises("invalid", "it has: next", function() return data:nxet() end)
  tap.raises("invalid", "instead of the loss", rille.train,
    { update = function() return 3 end, data = data, steps = 1 })
  local model = rille.nn.gpt { layers = 1, heads = 1, width = 4, context = 4 }
  tap.raises("invalid", "sees 4 tokens", function() return model((data:next())) end)
  tap.raises("state", "log makes 1 NaN of 1 values", rille.train, { data = data, steps = 2, log_every = 0,
    check_numbers = true, update = function() return dev:tensor(-1):log() end })
  tap.raises("state", "became NaN or infinite", rille.train, { data = data, steps = 2, log_every = 0,
    update = function() return dev:tensor(-1):log() end })
end)

tap.test("lists of named tensors are written and read", function()
  local path = os.tmpname()
  local function mlp(seed)
    local m = rille.nn.mlp({ 4, 8, 2 }, { seed = seed })
    return m, rille.optim.adamw(m, { lr = 0.1 }), rille.optim.ema(m)
  end
  local x = dev:randn { 3, 4 }
  local function learn(m, opt, ema)
    m(x):square():sum():backward()
    opt:step()
    opt:zero_grad()
    ema:update()
  end
  local one, opt, ema = mlp(1)
  local two, other, average = mlp(2)
  learn(one, opt, ema)
  for _, pair in ipairs { { one, two }, { opt, other }, { ema, average } } do
    rille.data.save_tensors(path, pair[1]:state())
    pair[2]:load_state((rille.data.load_tensors(path)))
  end
  tap.equal(two(x):totable(), one(x):totable())
  learn(one, opt, ema)
  learn(two, other, average)
  tap.equal(two(x):totable(), one(x):totable())
  for i, entry in ipairs(ema:state()) do tap.equal(average:state()[i].tensor:totable(), entry.tensor:totable()) end
  rille.data.save_tensors(path, one:parameters())
  local three = mlp(3)
  three:load_state(path)
  tap.equal(three(x):totable(), one(x):totable())
  os.remove(path)
end)

tap.test("tensors of a file by their names", function()
  local path = os.tmpname()
  local model = rille.nn.gpt { layers = 1, heads = 2, width = 8, context = 4, vocab = 16, tied = true, seed = 3 }
  rille.data.save_tensors(path, model, { metadata = { made = "here" } })
  local tensors, metadata = rille.data.load_tensors(path)
  tap.equal(metadata, { made = "here" })
  tap.equal(tensors["tokens.weight"]:shape(), { 16, 8 })
  tap.equal(tensors["head.weight"], nil)  -- it is the token embedding
  local other = rille.nn.gpt { layers = 1, heads = 2, width = 8, context = 4, vocab = 16, tied = true, seed = 4 }
  local ids = dev:tensor({ { 1, 2, 3 } }, { dtype = "i64" })
  tap.ok(other(ids):sum():item() ~= model(ids):sum():item())
  other:load_state(tensors)
  tap.equal(other(ids):totable(), model(ids):totable())
  local every = {}
  for _, dtype in ipairs { "bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64" } do
    every[dtype] = dev:tensor({ 0, 1 }, { dtype = dtype })
  end
  rille.data.save_tensors(path, every)
  for dtype, t in pairs(rille.data.load_tensors(path)) do
    tap.equal({ t.dtype, t:to("i32"):totable() }, { dtype, { 0, 1 } })
  end
  tap.raises("invalid", "is no tensor", rille.data.save_tensors, path, { a = 5 })
  local twin = { name = "a", tensor = ids }
  tap.raises("invalid", "entry 2 of the list is the second 'a'", rille.data.save_tensors, path, { twin, twin })
  tap.raises("invalid", "entry 1 of the list has no name", rille.data.save_tensors, path, { { tensor = ids } })
  tap.raises("invalid", "2 values, of which 1 are a list", rille.data.save_tensors, path, { twin, b = ids })
  tap.raises("invalid", "'a' is no tensor", rille.data.save_tensors, path, { { name = "a" } })
  tap.raises("invalid", "only strings", rille.data.save_tensors, path, { a = ids }, { metadata = { n = 5 } })
  local file = io.open(path, "w")
  file:write("not safetensors")
  file:close()
  tap.raises("integrity", path, rille.data.load_tensors, path)
  tap.raises("io", "nowhere", rille.data.load_tensors, "/nowhere/x.safetensors")
  os.remove(path)
end)

tap.test("a model in several files: by their index, or by the folder", function()
  local dir = os.tmpname()
  os.remove(dir)
  os.execute("mkdir " .. dir)
  local function write_index(text)
    local file = io.open(dir .. "/model.safetensors.index.json", "w")
    file:write(text)
    file:close()
  end
  tap.raises("io", "has neither model.safetensors nor its index", rille.data.load_tensors, dir)
  rille.data.save_tensors(dir .. "/model.safetensors", { a = dev:ones { 1 } })
  tap.equal(rille.data.load_tensors(dir).a:totable(), { 1 })
  rille.data.save_tensors(dir .. "/one.safetensors", { a = dev:ones { 2 }, b = dev:zeros { 3 } },
    { metadata = { format = "pt" } })
  rille.data.save_tensors(dir .. "/two.safetensors", { a = dev:zeros { 4 }, c = dev:full { 2, value = 5 } })
  write_index [[{"metadata": {"total_size": 28},
    "weight_map": {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}}]]
  for _, path in ipairs { dir, dir .. "/model.safetensors.index.json" } do
    local tensors, metadata = rille.data.load_tensors(path)
    tap.equal({ tensors.a:totable(), tensors.b:totable(), tensors.c:totable() }, { { 1, 1 }, { 0, 0, 0 }, { 5, 5 } })
    tap.equal(metadata, { format = "pt" })
  end
  write_index [[{"weight_map": {"a": "one.safetensors", "d": "two.safetensors"}}]]
  tap.raises("integrity", "'d' is not in " .. dir .. "/two.safetensors", rille.data.load_tensors, dir)
  write_index [[{"weight_map": {"a": "one.safetensors", "e": "three.safetensors"}}]]
  tap.raises("io", "its shard 'three.safetensors' is missing ('e' is in it)", rille.data.load_tensors, dir)
  write_index [[{"weight_map": {"a": "../one.safetensors"}}]]
  tap.raises("integrity", "which is not a file name", rille.data.load_tensors, dir)
  for _, text in ipairs { "{", "[1]", "{}", [[{"weight_map": {}}]] } do
    write_index(text)
    tap.raises("integrity", "is not an index of safetensors files", rille.data.load_tensors, dir)
  end
  tap.raises("io", "nowhere", rille.data.load_tensors, "/nowhere/model.safetensors.index.json")
  os.execute("rm -r " .. dir)
end)

tap.test("products in bf16, parameters and gradients in f32", function()
  local model = rille.nn.linear(16, 4, { seed = 2 })
  local x = dev:randn { 8, 16 }
  local y = rille.autocast("bf16", model, x)
  tap.equal(y.dtype, "bf16")
  tap.equal(model(x).dtype, "f32")
  tap.ok((y:to("f32") - model(x)):abs():max():item() < 0.05)
  y:to("f32"):sum():backward()
  tap.equal(model.weight.grad.dtype, "f32")
  local bf16 = model.weight.grad:clone()
  model.weight:set_grad()
  model(x):sum():backward()
  tap.ok((bf16 - model.weight.grad):abs():max():item() < 0.1)
  tap.equal(rille.autocast("f32", model, x).dtype, "f32")
  tap.equal(rille.autocast("tf32", model, x):totable(), model(x):totable(), "a CPU has no TF32")
  tap.raises(nil, "mine", rille.autocast, "bf16", function() error("mine") end)
  tap.equal(model(x).dtype, "f32")  -- put back after an error
  tap.raises("invalid", "i32", rille.autocast, "i32", model, x)
  local step = rille.compile(function(a) return model(a) end)
  for _ = 1, 3 do tap.equal(step(x).dtype, "f32") end
  for _ = 1, 3 do tap.equal(rille.autocast("bf16", step, x).dtype, "bf16") end  -- a key of its own
end)

-- A clock that a test turns, and a meter by it.
local function turned(options)
  local now = 100
  local meter = require("rille.tools.meter").new(options or {}, function() return now end)
  return meter, function(seconds) now = now + seconds end
end

tap.test("a meter: the median of the steps, without the first ones", function()
  local meter, pass = turned { workload = "w", unit = "samples", model = rille.nn.linear(3, 5), precision = "bf16" }
  local news = 0
  meter:begin()
  for i = 1, 24 do
    pass(i <= 5 and 60 or 0.5)
    news = news + (meter:step(10) and 1 or 0)
  end
  tap.equal({ news, meter.report, meter:sum_up() }, { 0 }, "19 steps are too few")
  pass(500)  -- one that was interrupted does not move a median
  tap.equal(meter:step(10), true)
  local report = meter.report
  tap.equal({ report.rate, report.steps, report.batch, report.unit }, { 20, 20, 10, "samples" })
  tap.equal({ report.workload, report.params, report.precision, report.device }, { "w", 20, "bf16", dev.kind })
end)

tap.test("a meter sums up once in half a minute, over the last steps", function()
  local meter, pass = turned()
  meter:begin()
  for _ = 1, 25 do
    pass(1)
    meter:step(1)
  end
  local first, news = meter.report, 0
  for _ = 1, 280 do
    pass(0.1)
    news = news + (meter:step(1) and 1 or 0)
  end
  tap.equal({ news, meter.report, first.rate }, { 0, first, 1 })
  for _ = 1, 900 do
    pass(0.1)
    news = news + (meter:step(1) and 1 or 0)
  end
  tap.ok(news >= 3 and news <= 4, news)
  tap.ok(math.abs(meter:sum_up().rate - 10) < 1e-6, "the slow ones are too long ago")
  tap.equal(meter.report.steps, 20 + 280 + 900)
  -- What is no step is left out, and a step that takes no time is no division by nothing.
  pass(1000)
  meter:begin()
  meter:step(1)
  tap.ok(meter.rates[(meter.count - 1) % 500 + 1] < math.huge)
end)

tap.test("measuring a loop of one's own, and what it refuses", function()
  local step = rille.measure { items = 64, workload = "own" }
  for _ = 1, 30 do step() end
  step(32)
  tap.raises("invalid", "did you mean 'workload'", rille.measure, { worklod = "x" })
  tap.raises("invalid", "how many tokens", rille.measure {})
  tap.raises("invalid", "a name is needed", rille.measure, { workload = "" })
  tap.raises("invalid", "unit = images", rille.measure, { unit = "images" })
  tap.raises("invalid", "a module is needed", rille.measure, { model = {} })
  local data = { next = print }
  tap.raises("invalid", "workload = 7", rille.train, { update = print, data = data, steps = 3, workload = 7 })
  tap.raises("invalid", "a module is needed", rille.train, { update = print, data = data, steps = 3, model = 7 })
end)

tap.done()
