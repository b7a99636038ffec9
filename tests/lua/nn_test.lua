-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()
local nn = rille.nn

local function ids(list) return dev:tensor({ list }, { dtype = "i64" }) end

-- One step: every parameter gets a gradient, and the loss falls.
local function learns(name, model, loss_of)
  local opt = rille.optim.adamw(model:parameters(), { lr = 2e-3 })
  local losses = {}
  for step = 1, 8 do
    local loss = loss_of(model)
    loss:backward()
    if step == 1 then
      for _, p in ipairs(model:parameters()) do
        if not p.tensor.grad then tap.ok(false, name .. ": no gradient for " .. p.name) end
      end
    end
    opt:step()
    losses[step] = loss:item()
  end
  local least = math.min(unpack(losses, 2))        -- of a deep model on four pictures the last one may be up again
  tap.ok(least < 0.9 * losses[1], ("%s: %g -> %g"):format(name, losses[1], least))
end

local gpt = { layers = 2, heads = 2, width = 32, context = 16, vocab = 64, seed = 1 }

-- Enough tensors for the loops over them to be compiled: compiled code holds the constants that it met.
tap.test("a model keeps nothing of what was loaded into it, nor of what it was before it was moved", function()
  local kept = setmetatable({}, { __mode = "v" })
  local function work()
    local model, file = nn.gpt { layers = 12, heads = 2, width = 8, context = 4, vocab = 8, tied = true }, {}
    for _, p in ipairs(model:state()) do file[p.name] = p.tensor:detach():clone() end
    kept.file, kept.tensor = file, file["tokens.weight"]
    model:load_state(file)
    kept.before = model.tokens.weight
    return model:to("bf16")
  end
  local model = work()
  dev:synchronize()
  collectgarbage()
  collectgarbage()
  tap.equal(next(kept), nil)
  tap.equal(#model:parameters(), 148)
end)

tap.test("models learn, with gradients everywhere", function()
  local x, y = ids { 1, 2, 3, 4, 5, 6 }, ids { 2, 3, 4, 5, 6, 7 }
  local function language(model) return model(x):cross_entropy(y) end
  learns("gpt", nn.gpt(gpt), language)
  learns("llama", nn.llama { layers = 2, heads = 4, kv_heads = 2, width = 32, context = 16, vocab = 64 }, language)
  learns("bert", nn.bert { layers = 2, heads = 2, width = 32, context = 16, vocab = 64, dropout = 0 }, function(model)
    local segments = ids { 0, 0, 0, 1, 1, 1 }
    return model(x, { segments = segments }):cross_entropy(y)
  end)
  local image, label = dev:randn { 4, 3, 32, 32 }, dev:tensor({ 0, 1, 2, 1 }, { dtype = "i64" })
  for _, depth in ipairs { 18, 50 } do
    local model = nn.resnet { depth = depth, classes = 3, width = 8, zero_init_residual = depth == 50 }
    if depth == 50 then
      for name, zero in pairs { bn1 = false, bn2 = false, bn3 = true } do
        tap.equal(model.layers[2][3][name].weight:abs():max():item() == 0, zero)
      end
    end
    learns("resnet " .. depth, model, function() return model(image):cross_entropy(label) end)
  end
  learns("mlp", nn.mlp { 12, 8, 3 }, function(model) return model(image:reshape(4, -1):narrow(2, 1, 12)):cross_entropy(
    label) end)
  learns("convolutions", nn.sequential { nn.conv2d(3, 8, 3, { padding = 1 }), nn.group_norm(2, 8),
    function(t) return t:relu():reshape(4, 8, -1) end, nn.conv1d(8, 3, 5, { stride = 4 }),
    function(t) return t:mean(-1) end }, function(model) return model(image):cross_entropy(label) end)
  learns("up again", nn.sequential { nn.conv2d(3, 8, 3, { padding = 1, stride = 2 }), function(t) return t:relu() end,
    nn.conv_transpose2d(8, 6, 3, { stride = 2, padding = 1, output_padding = 1, groups = 2 }),
    function(t) return t:relu():interpolate({ size = { 8, 4 }, mode = "bilinear" }):reshape(4, -1) end,
    nn.linear(6 * 8 * 4, 3) }, function(model) return model(image):cross_entropy(label) end)
end)

tap.test("published sizes have the published number of parameters", function()
  tap.equal(nn.gpt2():count(), 124439808)
  tap.equal(nn.bert():count(), 109514298)   -- BertForMaskedLM, bert-base-uncased
  tap.equal(nn.resnet():count(), 25557032)  -- torchvision's resnet50
end)

tap.test("logits with kept keys and values are those without", function()
  for _, model in ipairs { nn.gpt(gpt), nn.llama { layers = 2, heads = 4, kv_heads = 2, width = 32, context = 16,
    vocab = 64 } } do
    rille.no_grad(function()
      local whole = model(ids { 9, 8, 7, 6, 5 }):select(2, -1)
      local cache = { length = 0 }
      model:forward_cached(ids { 9, 8, 7 }, cache)
      model:forward_cached(ids { 6 }, cache)
      local last = model:forward_cached(ids { 5 }, cache)
      tap.ok((whole - last):abs():max():item() < 1e-5)
      tap.equal(cache.length, 5)
    end)
    local greedy = model:generate({ 9, 8, 7 }, { length = 6, temperature = 0 })
    tap.equal(#greedy, 9)
    local expected = { 9, 8, 7 }
    for i = 4, 9 do expected[i] = model(ids(expected)):select(2, -1):argmax(-1):item() end
    tap.equal(greedy, expected)
    tap.equal(#model:generate({ 1 }, { length = 40, top_k = 3 }), 41)  -- beyond the context of 16
    tap.equal(#model:state(), #model:parameters())                     -- nothing of it is left in the model
  end
end)

tap.test("models are compiled from their first call on", function()
  local x = ids { 1, 2, 3, 4 }
  for _, model in ipairs { nn.gpt(gpt), nn.llama { layers = 1, heads = 2, width = 16, context = 8, vocab = 64 },
    nn.bert { layers = 1, heads = 2, width = 16, context = 8, vocab = 64, dropout = 0 } } do
    local loss_of = rille.compile(function(t) return model(t):cross_entropy(t) end)
    local first = loss_of(x):item()
    for _ = 1, 3 do tap.equal(loss_of(x):item(), first) end
  end
end)

tap.test("texts: by bytes, and to a stop", function()
  local model = nn.gpt { layers = 1, heads = 2, width = 16, context = 8, vocab = 256, seed = 2 }
  local text = model:generate("ab", { length = 20, seed = 3 })
  tap.equal(#text, 22)
  tap.equal(text, model:generate("ab", { length = 20, seed = 3 }))
  local stop = text:sub(8, 8)
  tap.equal(model:generate("ab", { length = 20, seed = 3, stop = stop }), text:sub(1, text:find(stop, 3, true) - 1))
  tap.raises("invalid", "expected a prompt", model.generate, model, "")
  tap.raises("invalid", "did you mean 'length'", model.generate, model, "a", { lenght = 5 })
  for _, wrong in ipairs { { "temperature", -1 }, { "temperature", 0 / 0 }, { "temperature", "hot" }, { "top_k", 0 },
    { "top_k", 2.5 }, { "top_k", -3 }, { "length", -1 }, { "length", math.huge } } do
    local name, value = wrong[1], wrong[2]
    local err = tap.raises("invalid", ("model:generate: %s = %s; a"):format(name, tostring(value)), model.generate,
      model, "ab", { [name] = value })
    tap.ok(err.hint, name)
  end
  tap.equal(model:generate("ab", { length = 0 }), "ab")
end)

tap.test("long texts and long prompts are written as short ones", function()
  local model = nn.gpt { layers = 1, heads = 1, width = 4, context = 64, vocab = 256, seed = 2 }
  tap.equal(#model:generate("a", { length = 9000 }), 9001)
  local prompt = ("ab"):rep(5000)
  local text = model:generate(prompt, { length = 4 })
  tap.equal({ #text, text:sub(1, #prompt) == prompt }, { 10004, true })
end)

tap.test("a stop of several bytes, within what is written only; ids stop by an id or a list of them", function()
  local model = nn.gpt { layers = 1, heads = 2, width = 16, context = 8, vocab = 256, seed = 2 }
  local text = model:generate("ab", { length = 30, seed = 3 })
  for _, at in ipairs { { 3, 4 }, { 8, 9 }, { 10, 14 }, { 32, 32 } } do
    local stop = text:sub(at[1], at[2])
    tap.equal(model:generate("ab", { length = 30, seed = 3, stop = stop }), text:sub(1, text:find(stop, 3, true) - 1))
  end
  tap.equal(model:generate("ab", { length = 30, seed = 3, stop = "b" .. text:sub(3, 3) }), text)
  local ids = model:generate({ 97, 98 }, { length = 30, seed = 3 })
  local function before(n) return { unpack(ids, 1, n) } end
  local function first(id) for i = 3, #ids do if ids[i] == id then return i end end end
  tap.equal(model:generate({ 97, 98 }, { length = 30, seed = 3, stop = ids[9] }), before(first(ids[9]) - 1))
  tap.equal(model:generate({ 97, 98 }, { length = 30, seed = 3, stop = { ids[9], ids[10], ids[11] } }), before(8))
  tap.equal(model:generate("ab", { length = 30, seed = 3, stop = ids[9] }), text:sub(1, first(ids[9]) - 1))
  for _, wrong in ipairs { "", {}, { 1.5 }, { "a" }, -1, true } do
    tap.raises("invalid", "model:generate: stop = ", model.generate, model, "ab", { stop = wrong })
  end
  tap.raises("invalid", "for a list of ids", model.generate, model, { 97 }, { stop = "a" })
end)

tap.test("prompts that the model has no tokens for are refused before anything is computed", function()
  local wide, narrow = nn.gpt { layers = 1, heads = 1, width = 4, context = 8, vocab = 300 }, nn.gpt { layers = 1,
    heads = 1, width = 4, context = 8, vocab = 64 }
  tap.raises("invalid", "a text without a tokenizer is bytes, and the model has 300 tokens", wide.generate, wide, "ab")
  tap.equal(#wide:generate({ 299 }, { length = 3 }), 4)
  tap.raises("invalid", "the prompt's token 1 is 97, and the model has 64", narrow.generate, narrow, "ab")
  for _, wrong in ipairs { 1.5, -1, 64, "a", 0 / 0 } do
    tap.raises("invalid", ("prompt[2] = %s; a whole number from 0 to 63 is needed"):format(tostring(wrong)),
      narrow.generate, narrow, { 1, wrong })
  end
end)

tap.test("any temperature above 0, and the share top_p of the likeliest", function()
  local model = nn.gpt { layers = 1, heads = 2, width = 16, context = 8, vocab = 64, seed = 2 }
  local greedy = model:generate({ 5 }, { length = 20, temperature = 0 })
  tap.equal(model:generate({ 5 }, { length = 20, temperature = 1e-40 }), greedy)
  tap.equal(model:generate({ 5 }, { length = 20, top_p = 1e-6 }), greedy)
  local all = model:generate({ 5 }, { length = 20, seed = 4 })
  tap.ok(table.concat(all, " ") ~= table.concat(greedy, " "))
  tap.equal(model:generate({ 5 }, { length = 20, seed = 4, top_p = 1 }), all)
  -- Of shares 0.5, 0.25, 0.15, 0.1 the first two have 0.75.
  local fixed = nn.class("Fixed", {
    init = function(self)
      self.logits, self.context = dev:tensor({ { 0.1, 0.5, 0.15, 0.25 } }):log():requires_grad_(), 8
    end,
    forward = function(self, x) return x end,
    forward_cached = function(self, x, cache)
      cache.length = cache.length + x:size(2)
      return self.logits:detach()
    end,
    generate = require("rille.nn.generate").generate,
  })()
  for top_p, most in pairs { [0.4] = 1, [0.6] = 2, [0.8] = 3, [1] = 4 } do
    local drawn, count = {}, 0
    local ids = fixed:generate({ 1 }, { length = 100, temperature = 1, top_p = top_p, seed = 1 })
    for i = 2, #ids do
      if not drawn[ids[i]] then drawn[ids[i]], count = true, count + 1 end
    end
    tap.equal({ count, drawn[1] }, { most, true })
  end
  for _, wrong in ipairs { 0, -1, 1.1, 0 / 0, "all" } do
    tap.raises("invalid", "model:generate: top_p = ", model.generate, model, { 5 }, { top_p = wrong })
  end
end)

tap.test("special tokens in a prompt are text, unless they are asked for; ids that cannot be spelt are not drawn",
  function()
  local asked = {}
  local words = { encode = function(_, text, o) asked[#asked + 1] = o.special return { 1, 2 } end, size = 3,
    decode = function(_, ids) return type(ids) == "number" and tostring(ids) or table.concat(ids) end }
  local model = nn.gpt { layers = 1, heads = 1, width = 4, context = 8, vocab = 16, seed = 2 }
  local text = model:generate("<|endoftext|>", { tokenizer = words, length = 40, temperature = 2 })
  tap.ok(text:find("^<|endoftext|>[012]+$") and #text == 53, text)
  model:generate("<|endoftext|>", { tokenizer = words, length = 1, special = true })
  tap.equal(asked, { false, true })
end)

tap.test("a prompt begins with what the template has, if asked for, and what is written goes on behind it", function()
  local path, seen = os.tmpname(), nil
  local f = assert(io.open(path, "w"))
  f:write([=[{"model":{"type":"BPE","vocab":{"<s>":0,"▁":1,"a":2,"▁a":3},"merges":[["▁","a"]]},
    "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
      {"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
    "decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
    "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],
      "special_tokens":{"<s>":{"id":"<s>","ids":[0]}}},
    "added_tokens":[{"id":0,"content":"<s>","special":true}]}]=])
  f:close()
  local words = rille.data.tokenizer(path)
  os.remove(path)
  local model = nn.gpt { layers = 1, heads = 1, width = 4, context = 8, vocab = 4 }
  rawset(model, "forward_cached", function(_, given, cache)
    seen = seen or given:totable()
    cache.length = cache.length + given:size(2)
    return dev:tensor { { 0, 0, 0, 9 } }
  end)
  local o = { tokenizer = words, length = 3, temperature = 0 }
  tap.equal(model:generate("a", o), "a a a a")
  tap.equal(seen, { { 3 } })
  seen, o.before, o.stop = nil, true, "a a a"
  tap.equal(model:generate("a", o), "a ")
  tap.equal(seen, { { 0, 3 } })
  tap.raises("invalid", "did you mean 'before'", words.encode, words, "a", { befor = true })
  tap.raises("invalid", "continued", words.decode, words, 3, { contined = true })
end)

tap.test("weights of other libraries by their names", function()
  local model = nn.gpt2 { layers = 2, heads = 2, width = 8, context = 4, vocab = 16, seed = 5 }
  local theirs = {}
  local names = { norm1 = "ln_1", norm2 = "ln_2", ["attention.qkv"] = "attn.c_attn",
    ["attention.out"] = "attn.c_proj", fc = "mlp.c_fc", proj = "mlp.c_proj" }
  for _, p in ipairs(model:parameters()) do
    local block, part, kind = p.name:match("^blocks%.(%d)%.(.+)%.(%a+)$")
    local t = p.tensor:detach()
    if block and kind == "weight" and not part:find("norm") then t = t:transpose(1, 2):contiguous() end
    local name = block and ("h.%d.%s.%s"):format(block - 1, names[part], kind) or
      ({ ["tokens.weight"] = "wte.weight", positions = "wpe.weight", ["norm.weight"] = "ln_f.weight",
        ["norm.bias"] = "ln_f.bias" })[p.name]
    theirs["transformer." .. name] = t
  end
  local path = os.tmpname()
  rille.data.save_tensors(path, theirs)
  local sizes = { layers = 2, heads = 2, width = 8, context = 4, vocab = 16, seed = 6, weights = path }
  local other = nn.gpt2(sizes)
  tap.equal(other(ids { 1, 2, 3 }):totable(), model(ids { 1, 2, 3 }):totable())
  sizes.layers = 3
  tap.raises("state", "h.2.", nn.gpt2, sizes)
  sizes.layers = 1
  tap.raises("state", "the file has 'transformer.h.1.", nn.gpt2, sizes)
  theirs["transformer.h.0.attn.bias"], theirs["lm_head.weight"] = dev:zeros { 4, 4 }, dev:zeros { 16, 8 }
  sizes.layers = 2
  rille.data.save_tensors(path, theirs)
  tap.equal(nn.gpt2(sizes)(ids { 1, 2, 3 }):totable(), model(ids { 1, 2, 3 }):totable())
  theirs["transformer.h.0.mlp.c_fc.scale"] = dev:zeros { 4 }
  rille.data.save_tensors(path, theirs)
  tap.raises("state", "the file has 'transformer.h.0.mlp.c_fc.scale', which the model lacks", nn.gpt2, sizes)
  sizes.layers, sizes.vocab = 2, 17
  tap.raises("state", "[16, 8] in the file and [17, 8] in the model", nn.gpt2, sizes)
  os.remove(path)
end)

-- The sums are compared in tests/peer/torch; this one needs no torch.
tap.test("names of Llama's, BERT's and torchvision's files", function()
  local path, text = os.tmpname(), { layers = 1, heads = 2, width = 8, context = 4, vocab = 16 }
  local function check(make, o, names)
    local first, file = make(o), {}
    for _, s in ipairs(first:state()) do
      if names[s.name] ~= nil then
        rille.no_grad(function() s.tensor:detach():copy_(dev:rand(s.tensor:shape())) end)
        file[names[s.name]] = s.tensor
      end
    end
    rille.data.save_tensors(path, file)
    o.weights = path
    local second = {}
    for _, s in ipairs(make(o):state()) do second[s.name] = s.tensor:totable() end
    for _, s in ipairs(first:state()) do
      tap.ok(names[s.name], "no name for " .. s.name)
      tap.equal(second[s.name], s.tensor:totable())
    end
    o.weights = nil
  end
  local function of(block, names, whole)
    for ours, theirs in pairs(names) do whole["blocks.1." .. ours] = block .. theirs end
    return whole
  end
  check(nn.llama, text, of("model.layers.0.", { ["attention.q.weight"] = "self_attn.q_proj.weight",
    ["attention.k.weight"] = "self_attn.k_proj.weight", ["attention.v.weight"] = "self_attn.v_proj.weight",
    ["attention.out.weight"] = "self_attn.o_proj.weight", ["gate.weight"] = "mlp.gate_proj.weight",
    ["up.weight"] = "mlp.up_proj.weight", ["down.weight"] = "mlp.down_proj.weight",
    ["norm1.weight"] = "input_layernorm.weight", ["norm2.weight"] = "post_attention_layernorm.weight" },
    { ["tokens.weight"] = "model.embed_tokens.weight", ["norm.weight"] = "model.norm.weight",
      ["head.weight"] = "lm_head.weight" }))
  local linears = { ["attention.q"] = "attention.self.query", ["attention.k"] = "attention.self.key",
    ["attention.v"] = "attention.self.value", ["attention.out"] = "attention.output.dense", fc = "intermediate.dense",
    proj = "output.dense" }
  for _, norm in ipairs { { "weight", "bias" }, { "gamma", "beta" } } do
    local head, block = "cls.predictions.", {}
    for ours, theirs in pairs(linears) do
      block[ours .. ".weight"], block[ours .. ".bias"] = theirs .. ".weight", theirs .. ".bias"
    end
    local whole = { ["tokens.weight"] = "bert.embeddings.word_embeddings.weight",
      ["places.weight"] = "bert.embeddings.position_embeddings.weight",
      ["segments.weight"] = "bert.embeddings.token_type_embeddings.weight", ["head.bias"] = head .. "bias",
      ["head.fc.weight"] = head .. "transform.dense.weight", ["head.fc.bias"] = head .. "transform.dense.bias" }
    for i, kind in ipairs { "weight", "bias" } do
      block["norm1." .. kind] = "attention.output.LayerNorm." .. norm[i]
      block["norm2." .. kind] = "output.LayerNorm." .. norm[i]
      whole["norm." .. kind] = "bert.embeddings.LayerNorm." .. norm[i]
      whole["head.norm." .. kind] = head .. "transform.LayerNorm." .. norm[i]
    end
    check(nn.bert, text, of("bert.encoder.layer.0.", block, whole))
  end
  local names = {}
  for _, s in ipairs(nn.resnet({ depth = 18, width = 2, classes = 2 }):state()) do
    names[s.name] = s.name:gsub("^layers%.(%d)%.(%d)", function(stage, block)
      return "layer" .. stage .. "." .. block - 1
    end):gsub("downsample%.(%d)", function(i) return "downsample." .. i - 1 end)
  end
  tap.equal(names["layers.2.1.downsample.2.running_var"], "layer2.0.downsample.1.running_var")
  check(nn.resnet, { depth = 18, width = 2, classes = 2 }, names)
  os.remove(path)
end)

tap.test("angles of Llama 3.1: fast pairs as they were, slow ones slower, those between in between", function()
  local sizes = { layers = 1, heads = 2, width = 16, context = 40, vocab = 8, rope_base = 100 }
  local plain = nn.llama(sizes).angles.sin:totable()
  sizes.rope_scaling = { rope_type = "default" }
  tap.equal(nn.llama(sizes).angles.sin:totable(), plain)
  sizes.rope_scaling = { rope_type = "llama3", factor = 8, low_freq_factor = 1, high_freq_factor = 4,
    original_max_position_embeddings = 64 }
  local model = nn.llama(sizes)
  local scaled = model.angles.sin:totable()
  tap.equal({ #scaled, #scaled[1] }, { 40, 4 })
  -- Wavelengths of the pairs are 6.3, 20, 63 and 199 places; below 16 and above 64 it is clear.
  local function near(a, b) tap.ok(math.abs(a - b) < 1e-6, a .. " and " .. b) end
  near(scaled[30][1], plain[30][1])
  near(scaled[33][4], plain[5][4])                          -- place 32 is where place 4 was
  for pair, share in pairs { [2] = 0.7403565, [3] = 0.0061972 } do
    near(scaled[2][pair], math.sin(100 ^ (-(pair - 1) / 4) * (share + (1 - share) / 8)))
  end
  local cos = model.angles.cos:totable()
  near(scaled[30][2] ^ 2 + cos[30][2] ^ 2, 1)
  tap.equal(#model:generate({ 1, 2 }, { length = 5 }), 7)
  for _, wrong in ipairs { { "rope_type", "yarn", "of type yarn" }, { "factor", "8", "factor = 8; a number" },
    { "high_freq_factor", 1, "high_freq_factor = 1 must be above" }, { "factr", 8, "did you mean 'factor'" } } do
    local given, bad = sizes.rope_scaling, {}
    for key, v in pairs(given) do bad[key] = v end
    bad[wrong[1]], sizes.rope_scaling = wrong[2], bad
    tap.raises("invalid", wrong[3], nn.llama, sizes)
    sizes.rope_scaling = given
  end
end)

tap.test("heads need not share the width", function()
  local model = nn.llama { layers = 1, heads = 3, kv_heads = 1, head_width = 4, width = 10, context = 8, vocab = 8 }
  local a = model.blocks[1].attention
  tap.equal({ a.q.weight:shape(), a.k.weight:shape(), a.out.weight:shape() }, { { 12, 10 }, { 4, 10 }, { 10, 12 } })
  tap.equal(model(ids { 1, 2, 3 }):shape(), { 1, 3, 8 })
  tap.equal(#model:generate({ 1, 2 }, { length = 5 }), 7)
  tap.raises("invalid", "width = 10 cannot be shared among heads = 3", nn.llama, { layers = 1, heads = 3, width = 10,
    context = 8, vocab = 8 })
  tap.raises("invalid", "head_width = 1.5", nn.attention, 8, 4, { head_width = 1.5 })
end)

tap.test("dropout of the models drops weights of attention, too, and none of it is one operation", function()
  local x = ids { 1, 2, 3, 4 }
  local function attends(o) return nn.gpt(o).blocks[1].attention.dropout end
  local o = { layers = 1, heads = 2, width = 16, context = 8, vocab = 64, dropout = 0.2 }
  tap.equal({ attends(o), nn.bert(o).blocks[1].attention.dropout }, { 0.2, 0.2 })
  o.attention_dropout = 0
  tap.equal({ attends(o), nn.bert(o).blocks[1].attention.dropout, nn.gpt2(o).blocks[1].attention.dropout },
    { 0, 0, 0 })
  for _, make in ipairs { nn.gpt, nn.bert } do
    for p, calls in pairs { [0] = 1, [0.2] = 0 } do
      o.attention_dropout = p
      local model = make(o)
      local f = rille.compile(function(t) return model(t) end)
      local found = 0
      for _ = 1, 3 do f(x) end
      for _, row in ipairs(f:explain().operations) do
        if row.name:find("^attention") then found = found + row.calls end
      end
      tap.equal(found, calls)
    end
  end
end)

tap.test("the mode of a part is a part of the key of compiled functions, and is left as it was", function()
  local model = nn.sequential { nn.linear(16, 64, { seed = 1 }), nn.dropout(0.5) }
  local drop, x = model[2], dev:ones { 4, 16 }
  local update = rille.compile(function(v) return model(v) end)
  local function zeros() return update(x):eq(0):to("f32"):mean():item() end
  tap.ok(drop.training)
  drop:eval()
  for _ = 1, 3 do tap.equal(zeros(), 0) end
  model:train()                       -- the part, too
  for _ = 1, 3 do tap.ok(zeros() > 0.2) end
  model:eval()
  for _ = 1, 3 do tap.equal(zeros(), 0) end
  drop:train()
  for _ = 1, 3 do tap.ok(zeros() > 0.2) end
  model:train()
  drop:eval()
  local back = model:_evaluating()
  tap.equal({ model.training, drop.training }, { false, false })
  back()
  tap.equal({ model.training, drop.training }, { true, false })
  tap.equal(zeros(), 0)
end)

tap.test("running statistics are state, not parameters", function()
  local norm = nn.batch_norm(3)
  tap.equal(#norm:parameters(), 2)
  tap.equal(#norm:state(), 4)
  norm(dev:randn { 8, 3, 4 } + 5)
  tap.ok(norm.running_mean:mean():item() > 0.3)
  norm:eval()
  local before = norm.running_mean:totable()
  norm(dev:randn { 8, 3, 4 } + 5)
  tap.equal(norm.running_mean:totable(), before)
  local copy = nn.batch_norm(3)
  local state = {}
  for _, s in ipairs(norm:state()) do state[s.name] = s.tensor end
  copy:load_state(state)
  tap.equal(copy.running_mean:totable(), before)
end)

tap.test("what two parts share is one parameter, and stays shared", function()
  local Twins = nn.class("Twins", {
    init = function(self)
      self.left, self.right = nn.linear(4, 4, { bias = false }), nn.linear(4, 4, { bias = false })
      self.right.weight = self.left.weight
    end,
    forward = function(self, x) return self.right(self.left(x)) end,
  })
  local twins = Twins()
  tap.equal(#twins:parameters(), 1)
  tap.equal(twins:parameters()[1].name, "left.weight")
  tap.equal(twins:count(), 16)
  tap.equal(#twins:state(), 2)
  for _, target in ipairs { "bf16", "f32", "cpu" } do
    twins:to(target)
    tap.ok(rawequal(twins.left.weight, twins.right.weight), target)
    tap.ok(twins.left.weight.requires_grad, target)
  end
  -- One step moves it once. With x = 1 and weights of 0.5 each part gives it a gradient of 2.
  local one = dev:ones { 1, 4 }
  rille.no_grad(function() twins.left.weight:copy_(dev:full { 4, 4, value = 0.5 }) end)
  twins(one):sum():backward()
  rille.optim.sgd(twins:parameters(), { lr = 0.125 }):step()
  tap.ok(math.abs(twins.left.weight:sum():item()) < 1e-6)
end)

tap.test("wrong options are named", function()
  tap.raises("invalid", "no size '1T'", nn.gpt2, { size = "1T" })
  tap.raises("invalid", "no depth 51", nn.resnet, { depth = 51 })
  tap.raises("invalid", "heads = 3", nn.bert, { heads = 3, width = 64 })
  tap.raises("invalid", "kv_heads = 3", nn.llama, { layers = 1, heads = 4, kv_heads = 3, width = 32, context = 4,
    vocab = 8 })
  tap.raises("invalid", "layers", nn.llama, { heads = 4, width = 32, context = 4, vocab = 8 })
  tap.raises("invalid", "groups", nn.conv2d, 3, 4, 3, { groups = 2 })
  tap.raises("invalid", "groups", nn.conv_transpose2d, 4, 3, 3, { groups = 2 })
  tap.raises("invalid", "unknown option 'output_padding'", nn.conv2d, 3, 4, 3, { output_padding = 1 })
  tap.raises("invalid", "neither a module nor a function", nn.sequential, { 5 })
  tap.raises("invalid", "size 2 = b", nn.mlp, { 4, "b", 2 })
  tap.raises("invalid", "size 1 = x", nn.mlp, { "x", 2 })
  tap.raises("invalid", "channels = 8 cannot be shared among groups = 3", nn.group_norm, 3, 8)
  tap.equal(tostring(nn.mlp { 4, 3, 2 }), "Mlp: 23 parameters")
end)

tap.test("a model with running means in another type, and back", function()
  local model = nn.sequential { nn.batch_norm(3), nn.linear(3, 2) }
  for _, kind in ipairs { "f64", "f32" } do
    model:to(kind)
    tap.equal(model(dev:ones { 4, 3, dtype = kind }).dtype, kind)
    for _, entry in ipairs(model:state()) do tap.equal(entry.tensor.dtype, kind) end
  end
end)

tap.done()
