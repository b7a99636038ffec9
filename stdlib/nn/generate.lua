-- Internal: continuing a text, token by token, with the keys and values of earlier ones kept.
local native = require "rille.native"
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

-- One of the logits [1, vocab] of the last place.
local function draw(logits, o)
  if o.temperature == 0 then return logits:argmax(-1):item() end
  logits = logits / o.temperature
  if o.top_k then
    local best = logits:topk(math.min(o.top_k, logits:size(-1)), -1)
    logits = logits:masked_fill(logits:lt(best:narrow(-1, -1, 1)), -math.huge)
  end
  return logits:softmax(-1):multinomial():item()
end

-- model:forward_cached(ids, cache) gives logits of the last place and extends the cache. What does not fit into the
-- context any more is left behind: it goes on with the later half.
local function continue(model, ids, o, each)
  local dev, cache, pending = rille.device(), nil, ids
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
    local id = draw(logits:to("f32"), o)
    ids[#ids + 1] = id
    pending = { id }
    if each(id) then break end
  end
end

local function check(o)
  if type(o.temperature) ~= "number" or not (o.temperature >= 0 and o.temperature < math.huge) then
    tools.invalid(("model:generate: temperature = %s; a number from 0 on is needed"):format(tostring(o.temperature)),
      "0 takes the likeliest each time, 1 draws as the model gives it")
  end
  if o.top_k ~= nil and (type(o.top_k) ~= "number" or o.top_k < 1 or o.top_k ~= math.floor(o.top_k)) then
    tools.invalid(("model:generate: top_k = %s; a whole number from 1 on is needed"):format(tostring(o.top_k)),
      "leave it out to draw from all; temperature = 0 takes the likeliest")
  end
  if type(o.length) ~= "number" or o.length < 0 or o.length ~= math.floor(o.length) or o.length == math.huge then
    tools.invalid(("model:generate: length = %s; a whole number from 0 on is needed"):format(tostring(o.length)),
      "it counts the tokens to write; stop = .. ends sooner")
  end
end

-- Documented at nn.gpt. A text without a tokenizer is bytes; a list of ids gives a list of ids.
local function generate(model, prompt, options)
  native.check_options(options, "model:generate", { "length", "temperature", "top_k", "seed", "stop", "tokenizer" })
  local o = { length = 100, temperature = 0.8, seed = 0 }
  for key, v in pairs(options or {}) do o[key] = v end
  check(o)
  local text, ids = type(prompt) == "string", nil
  if text and prompt ~= "" then
    ids = o.tokenizer and o.tokenizer:encode(prompt, { special = true }) or { prompt:byte(1, -1) }
  elseif type(prompt) == "table" and #prompt > 0 then
    ids = {}
    for i, id in ipairs(prompt) do ids[i] = id end
  else
    tools.invalid("model:generate: expected a prompt: a text of at least one byte, or a list of ids")
  end
  local training, began = model.training, #ids
  local function written()
    local new = {}
    for i = began + 1, #ids do new[#new + 1] = ids[i] end
    if not text then return ids end
    if o.tokenizer then return prompt .. o.tokenizer:decode(new) end
    return prompt .. string.char(unpack(new))
  end
  model:eval()
  local ok, err = pcall(nn.with_seed, o.seed, function()
    rille.no_grad(function()
      continue(model, ids, o, function(id)
        if o.stop == nil then return false end
        local spelt = text and (o.tokenizer and o.tokenizer:decode(id) or string.char(id)) or id
        if spelt ~= o.stop then return false end
        ids[#ids] = nil
        return true
      end)
    end)
  end)
  if training then model:train() end
  if not ok then error(err, 0) end
  return written()
end

return { generate = generate }
