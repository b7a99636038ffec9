-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

local base = os.tmpname()
os.remove(base)
os.execute("mkdir -p " .. base)
rille.defer(function() os.execute("rm -rf " .. base) end)

local function file(name, text)
  local f = assert(io.open(base .. "/" .. name, "wb"))
  f:write(text)
  f:close()
  return base .. "/" .. name
end

-- Ids that repeat with a period of seven, as u16.
local function ids(count)
  local list = {}
  for i = 1, count do list[i] = string.char(i % 7, 0) end
  return table.concat(list)
end

local function losses(make, steps, directory)
  local model, data, loss_of = make()
  local opt = rille.optim.adamw(model:parameters(), { lr = 3e-3 })
  dev:seed(1)
  local update = rille.compile(function(...)
    local loss = loss_of(model, ...)
    loss:backward()
    opt:step()
    return loss
  end)
  local save = directory and { every = 4, state = { model, opt, data }, directory = base .. "/" .. directory } or nil
  return rille.train({ update = update, data = data, steps = steps, log_every = 1, checkpoint = save }).losses
end

local function resumes(name, make)
  local whole = losses(make, 12)
  losses(make, 8, name)
  tap.equal(losses(make, 12, name), whole)
  return whole
end

tap.test("tokens: trained on, and resumed bit for bit", function()
  local path = file("train.bin", ids(3000))
  local whole = resumes("tokens", function()
    local data = rille.data.tokens(path, { batch = 4, context = 8, seed = 2 })
    return rille.nn.gpt { layers = 1, heads = 2, width = 16, context = 8, vocab = 8, seed = 1 }, data,
      function(model, x, y) return model(x):cross_entropy(y) end
  end)
  tap.ok(whole[12].loss < whole[1].loss - 0.1)
  local data = rille.data.tokens(path, { batch = 2, context = 8, validation = file("val.bin", ids(50)) })
  local x, y = data:next()
  tap.equal({ x.dtype, x:shape(), y:shape() }, { "i32", { 2, 8 }, { 2, 8 } })
  tap.equal(((x + 1) % 7):totable(), (y % 7):totable())
  tap.equal({ data:info().training_tokens, data:info().validation_tokens }, { 3000, 50 })
  tap.equal(data:validation(1):shape(), { 2, 8 })
  tap.ok(tostring(data):find("^Tokens: 3000 for training, 50 for validation"), tostring(data))
  tap.raises("invalid", "u16", rille.data.tokens, path, { dtype = "u8" })
  tap.raises("io", "nowhere", rille.data.tokens, base .. "/nowhere")
  tap.raises("invalid", "did you mean 'tokenizer'", rille.data.tokens, path, { tokeniser = 1 })
end)

tap.test("tokens of a text, by a tokenizer", function()
  local digits, lines = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", {}
  local function digit(n) return digits:sub(n + 1, n + 1) end
  for b = 0, 255 do lines[b + 1] = digit(math.floor(b / 4)) .. digit(b % 4 * 16) .. "== " .. b end
  lines[257] = "YWI= 256"   -- "ab"
  local vocabulary = file("bytes.tiktoken", table.concat(lines, "\n"))
  local text = file("text.txt", ("abba"):rep(100))
  local tokenizer = rille.data.tokenizer(vocabulary, { pattern = "gpt2" })
  tap.equal(tokenizer.path, vocabulary)
  local a = rille.data.tokens(text, { tokenizer = tokenizer, batch = 1, context = 5, shuffle = false })
  local b = rille.data.tokens(text, { tokenizer = tokenizer, batch = 1, context = 5, shuffle = false })
  tap.raises("invalid", "pattern", rille.data.tokens, text, { tokenizer = vocabulary })
  tap.equal((a:next()):totable(), { { 256, 98, 97, 256, 98 } })
  tap.equal(a:info().digest, b:info().digest)
  tap.equal(a:info().training_tokens + a:info().validation_tokens, 300)
end)

tap.test("data sets from files", function()
  local digits, lines = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", {}
  local function digit(n) return digits:sub(n + 1, n + 1) end
  for b = 0, 255 do lines[b + 1] = digit(math.floor(b / 4)) .. digit(b % 4 * 16) .. "== " .. b end
  local tokenizer = rille.data.tokenizer(file("plain.tiktoken", table.concat(lines, "\n")), { pattern = "gpt2" })
  local documents = {}
  for i = 1, 200 do documents[i] = ('{"body": "document %d"}'):format(i) end
  local options = { sources = file("documents.jsonl", table.concat(documents, "\n")), to = base .. "/built",
    tokenizer = tokenizer, field = "body", validation = 0.3 }
  tap.raises("invalid", "no end-of-text token", rille.data.build, options)
  options.separator = "none"
  local made = rille.data.build(options)
  tap.equal({ made.kind, made.train_documents + made.validation_documents, made.kept }, { "text", 200, 0 })
  tap.equal(rille.data.build(options).kept, #made.shards)
  local info = rille.data.tokens(options.to, { batch = 2, context = 8 }):info()
  tap.equal({ info.training_tokens, info.validation_tokens }, { made.train_tokens, made.validation_tokens })
  tap.ok(info.validation_tokens > 0)
  tap.raises("state", "kind 'text'", rille.data.arrays, options.to)
  local shard = options.to .. "/" .. made.shards[1].path
  os.execute("truncate -s 1100 " .. shard)
  tap.raises("integrity", made.shards[1].path, rille.data.tokens, options.to, { context = 8 })
  tap.raises("invalid", "did you mean 'field'", rille.data.build, { sources = options.sources, to = base .. "/b2",
    feild = "x" })

  local csv = file("table.csv", "n,x,kind\n1,0.5,a\n2,1.5,b\n3,2.5,a\n")
  rille.data.build { sources = csv, to = base .. "/columns" }
  local rows = rille.data.arrays(base .. "/columns", { names = { "n", "x", "kind" }, batch = 3, shuffle = false })
  local n, x, kind = rows:next()
  tap.equal({ n:totable(), x:totable(), kind:totable() }, { { 1, 2, 3 }, { 0.5, 1.5, 2.5 }, { 0, 1, 0 } })
  tap.equal({ n.dtype, x.dtype, kind.dtype }, { "i64", "f32", "i32" })
  tap.raises("state", "kind 'csv'", rille.data.tokens, base .. "/columns")
  tap.raises("invalid", "no dataset.json", rille.data.arrays, base)
end)

tap.test("arrays: images with changes, trained on, and resumed bit for bit", function()
  local labels = (dev:arange { 60 } % 3):to("i64")
  local images = dev:randn { 60, 1, 6, 6 } * 0.1 + labels:to("f32"):reshape(60, 1, 1, 1)
  local whole = resumes("arrays", function()
    local data = rille.data.arrays({ images, labels }, { batch = 8, seed = 4, flip = true, padding = 1, crop = 6 })
    local model = rille.nn.sequential { rille.nn.conv2d(1, 4, 3, { padding = 1, seed = 1 }), function(x)
      return x:relu():mean({ 3, 4 })
    end, rille.nn.linear(4, 3, { seed = 2 }) }
    return model, data, function(m, x, y) return m(x):cross_entropy(y) end
  end)
  tap.ok(whole[12].loss < whole[1].loss)
  local data = rille.data.arrays({ images, labels }, { batch = 6, split = 0.2 })
  local x, y = data:next()
  tap.equal({ x:shape(), y:shape(), y.dtype }, { { 6, 1, 6, 6 }, { 6 }, "i64" })
  tap.equal(({ data:validation(1) })[2]:totable(), { 0, 1, 2, 0, 1, 2 })
  tap.equal(data:validation_batches(), 2)
  tap.ok(tostring(data):find("^Arrays: 48 rows for training, 12"), tostring(data))
  tap.raises("invalid", "it has: next", function() return data:nxet() end)
  tap.raises("invalid", "expected a communicator, or nothing, got 2", function() return data:next(2) end)
  tap.raises("invalid", "expected a communicator", function() return data:next(x) end)
  tap.equal(data:next(rille.communicator { rank = 0, world = 1, device = "cpu" }):shape(), { 6, 1, 6, 6 })
  tap.raises("invalid", "array 2 is no tensor", rille.data.arrays, { images, 5 })
  tap.raises("invalid", "different numbers of rows", rille.data.arrays, { images, dev:zeros { 3 } })
end)

tap.test("arrays of a file, in the order of their names", function()
  local path = base .. "/set.safetensors"
  rille.data.save_tensors(path, { labels = dev:arange { 10 }, images = dev:arange { 20 }:reshape(10, 2) })
  local data = rille.data.arrays(path, { names = { "images", "labels" }, batch = 3, shuffle = false })
  local x, y = data:next()
  tap.equal({ x:totable(), y:totable() }, { { { 0, 1 }, { 2, 3 }, { 4, 5 } }, { 0, 1, 2 } })
  tap.raises("state", "no tensor 'pictures'", rille.data.arrays, path, { names = { "pictures" } })
end)

tap.test("what a state() gives is saved by its names", function()
  local model = rille.nn.linear(3, 2, { seed = 1 })
  local opt = rille.optim.adamw(model)
  model(rille.device():ones { 1, 3 }):sum():backward()
  opt:step()
  local path = os.tmpname()
  for _, state in ipairs { model:state(), opt:state() } do
    rille.data.save_tensors(path, state)
    local back, count = rille.data.load_tensors(path), 0
    for _ in pairs(back) do count = count + 1 end
    tap.equal(count, #state)
    for _, entry in ipairs(state) do tap.equal(back[entry.name]:totable(), entry.tensor:totable()) end
  end
  local err = tap.raises("invalid", "has no name", rille.data.save_tensors, path, { { "x" } })
  tap.ok(err.hint:find("{ name =, tensor = }", 1, true))
  os.remove(path)
end)

tap.done()
