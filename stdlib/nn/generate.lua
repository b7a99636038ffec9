-- Internal: generates text token by token, with a cache of earlier keys and values.
local native = require "rille.native"
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

-- A lower temperature would overflow f32; at this one the most likely token is practically always drawn.
local least_temperature = 1e-6

-- Keeps the most likely tokens whose probabilities add up to top_p; the most likely token is always kept.
local function nucleus(logits, top_p)
  local shares = logits:softmax(-1)
  local sorted = shares:sort(-1, { descending = true })
  local before = sorted:cumsum(-1) - sorted
  local least = sorted:masked_fill(before:ge(top_p), math.huge):min(-1, true)
  return logits:masked_fill(shares:lt(least), -math.huge)
end

-- Draws a token id from the logits [1, vocab] of the last position.
local function draw(logits, o)
  if o.temperature == 0 then return logits:argmax(-1):item() end
  logits = logits / math.max(o.temperature, least_temperature)
  if o.top_k then
    local best = logits:topk(math.min(o.top_k, logits:size(-1)), -1)
    logits = logits:masked_fill(logits:lt(best:narrow(-1, -1, 1)), -math.huge)
  end
  if o.top_p and o.top_p < 1 then logits = nucleus(logits, o.top_p) end
  return logits:softmax(-1):multinomial():item()
end

-- Generates ids. model:forward_cached(ids, cache) returns the logits of the last position and extends the cache. When
-- the context is full, generation continues with the later half of the ids. `spelt`: the ids that may be generated.
local function continue(model, dev, ids, spelt, o, each)
  local cache, pending = nil, ids
  local function rest(list, n)
    local out = {}
    for i = math.max(1, #list - n + 1), #list do out[#out + 1] = list[i] end
    return out
  end
  for _ = 1, o.length do
    if not cache or cache.length + #pending > model.context then
      cache = { length = 0 }
      pending = rest(ids, #ids > model.context and math.max(1, math.floor(model.context / 2)) or model.context)
    end
    local logits = model:forward_cached(dev:tensor({ pending }, { dtype = "i64" }), cache)
    if spelt and logits:size(-1) > spelt then logits = logits:narrow(-1, 1, spelt) end
    local id = draw(logits:to("f32"), o)
    ids[#ids + 1] = id
    pending = { id }
    if each(id) then break end
  end
end

local function is_id(v) return type(v) == "number" and v >= 0 and v == math.floor(v) and v < math.huge end

local function check(o)
  local function refuse(name, needed, hint)
    tools.invalid(("model:generate: %s = %s; %s is needed"):format(name, tostring(o[name]), needed), hint)
  end
  if type(o.temperature) ~= "number" or not (o.temperature >= 0 and o.temperature < math.huge) then
    refuse("temperature", "a number from 0 on",
      "0 takes the most likely token each time, 1 samples from the model's distribution")
  end
  if o.top_k ~= nil and (not is_id(o.top_k) or o.top_k < 1) then
    refuse("top_k", "a whole number from 1 on",
      "leave it out to sample from all; temperature = 0 takes the most likely token")
  end
  if o.top_p ~= nil and (type(o.top_p) ~= "number" or not (o.top_p > 0 and o.top_p <= 1)) then
    refuse("top_p", "a number above 0, up to 1",
      "leave it out to sample from all; 0.9 samples from the most likely 90 %")
  end
  if not is_id(o.length) then
    refuse("length", "a whole number from 0 on", "it counts the tokens to write; stop = .. ends sooner")
  end
end

-- Reads the stop condition: a text within the generated text, an id, or a list of ids. Returns a function to call
-- with each new id; when the condition is met, that function returns how much of the generated text, or how many ids,
-- precede the match.
local function stopper(o, text, spell)
  local stop = o.stop
  if stop == nil then return function() end end
  if text and type(stop) == "string" and stop ~= "" then
    local tail, length = "", 0
    return function(id)
      local piece = spell(id)
      tail, length = tail .. piece, length + #piece
      local from = tail:find(stop, 1, true)
      if from then return length - #tail + from - 1 end
      tail = #stop > 1 and tail:sub(-(#stop - 1)) or ""
    end
  end
  local ids = type(stop) == "number" and { stop } or stop
  local fits = type(ids) == "table" and #ids > 0
  for _, id in ipairs(fits and ids or {}) do fits = fits and is_id(id) end
  if not fits then
    tools.invalid(("model:generate: stop = %s; %s an id or a list of ids is needed"):format(
      type(stop) == "string" and "'" .. stop .. "'" or tostring(stop), text and "a text," or "for a list of ids"))
  end
  local last = {}
  return function(id)
    last[#last + 1] = id
    for i, wanted in ipairs(ids) do if last[#last - #ids + i] ~= wanted then return nil end end
    return #last - #ids, true
  end
end

-- Returns the prompt's ids, and whether the prompt is a text.
local function ids_of(model, prompt, o)
  local vocab, ids = rawget(model, "vocab") or math.huge, {}
  if type(prompt) == "string" and prompt ~= "" then
    if o.tokenizer then
      ids = o.tokenizer:encode(prompt, { special = o.special, before = o.before })
    else
      if vocab > 256 and vocab < math.huge then
        tools.invalid(("model:generate: a text without a tokenizer is bytes, and the model has %d tokens"):format(
          vocab), "tokenizer = rille.data.tokenizer(\"tokenizer.json\"), or a list of ids as the prompt")
      end
      for i = 1, #prompt do ids[i] = prompt:byte(i) end
    end
    for i, id in ipairs(ids) do
      if id >= vocab then
        tools.invalid(("model:generate: the prompt's token %d is %d, and the model has %d"):format(i, id, vocab),
          "the tokenizer does not match the model's vocab")
      end
    end
    return ids, true
  end
  if type(prompt) ~= "table" or #prompt == 0 then
    tools.invalid("model:generate: expected a prompt: a text of at least one byte, or a list of ids")
  end
  for i, id in ipairs(prompt) do
    if not is_id(id) or id >= vocab then
      tools.invalid(("model:generate: prompt[%d] = %s; a whole number %s is needed"):format(i, tostring(id),
        vocab < math.huge and "from 0 to " .. vocab - 1 or "from 0 on"))
    end
    ids[i] = id
  end
  return ids, false
end

-- model:generate, documented in nn.gpt. Without a tokenizer, a text is encoded as bytes; for a list of ids the result
-- is a list of ids.
local function generate(model, prompt, options)
  native.check_options(options, "model:generate", { "length", "temperature", "top_k", "top_p", "seed", "stop",
    "tokenizer", "special", "before" })
  local o = { length = 100, temperature = 0.8, seed = 0, special = false, before = false }
  for key, v in pairs(options or {}) do o[key] = v end
  check(o)
  local ids, text = ids_of(model, prompt, o)
  local function spell(id) return o.tokenizer and o.tokenizer:decode(id, { continued = true }) or string.char(id) end
  local stops = stopper(o, text, spell)
  local spelt = text and (o.tokenizer and o.tokenizer.size or 256) or nil
  local dev, began = tools.device_of(model), #ids
  local kept, counts_ids
  local back = model:_evaluating()
  local ok, err = pcall(nn.with_seed, o.seed, function()
    rille.no_grad(function()
      continue(model, dev, ids, spelt, o, function(id)
        kept, counts_ids = stops(id)
        return kept ~= nil
      end)
    end)
  end, dev)
  back()
  if not ok then error(err, 0) end
  if kept and (counts_ids or not text) then for i = #ids, began + kept + 1, -1 do ids[i] = nil end end
  if not text then return ids end
  local new = {}
  for i = began + 1, #ids do new[#new + 1] = o.tokenizer and ids[i] or string.char(ids[i]) end
  local written = not o.tokenizer and table.concat(new) or #new == 0 and "" or
    o.tokenizer:decode(new, { continued = true })
  return prompt .. (kept and not counts_ids and written:sub(1, kept) or written)
end

return { generate = generate }
