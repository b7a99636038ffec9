-- rille.nn.gpt: the transformer of GPT-2.
local generating = require "rille.nn.generate"
local nn = require "rille.nn"
local tools = require "rille.nn.tools"

local Block = nn.class("Block", {
  init = function(self, o)
    self.norm1, self.norm2 = nn.layer_norm(o.width), nn.layer_norm(o.width)
    self.attention = nn.attention(o.width, o.heads, { causal = true, deviation = 0.02,
      out_deviation = 0.02 / math.sqrt(2 * o.layers), dropout = o.attention_dropout })
    self.fc = nn.linear(o.width, 4 * o.width, { deviation = 0.02 })
    self.proj = nn.linear(4 * o.width, o.width, { deviation = 0.02 / math.sqrt(2 * o.layers) })
    self.dropout = nn.dropout(o.dropout)
  end,
  forward = function(self, x, cache)
    x = x + self.dropout(self.attention(self.norm1(x), { cache = cache }))
    return x + self.dropout(self.proj(self.fc(self.norm2(x)):gelu()))
  end,
})

local Gpt = nn.class("Gpt", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens = nn.embedding(o.vocab, o.width)
    self.positions = tools.normal({ o.context, o.width }, 0.01)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o) end
    self.norm = nn.layer_norm(o.width)
    if not o.tied then self.head = nn.linear(o.width, o.vocab, { bias = false, deviation = 0.02 }) end
  end,
  -- ids [batch, length] -> logits [batch, length, vocab]
  forward = function(self, ids)
    local length = tools.length_of(self, ids)
    local x = self.tokens(ids) + self.positions:narrow(1, 1, length)
    for _, block in ipairs(self.blocks) do x = block(x) end
    return tools.logits(self, self.norm(x))
  end,
  -- ids [batch, n] that follow the ids in the cache -> logits [batch, vocab] of the last position
  forward_cached = function(self, ids, cache)
    local length = ids:size(2)
    cache.context = self.context
    local x = self.tokens(ids) + self.positions:narrow(1, cache.length + 1, length)
    for _, block in ipairs(self.blocks) do x = block(x, cache) end
    cache.length = cache.length + length
    return tools.logits(self, self.norm(x:select(2, -1)))
  end,
  generate = generating.generate,
})

---A GPT: token and position embeddings, `layers` blocks (causal attention of `heads` heads, a GELU layer of 4 x width),
---all with pre-layer norm, and a linear head. Initialised as GPT-2, from `seed`. Called with ids [batch, length], it
---returns logits [batch, length, vocab].
---
---model:generate(prompt, { length = 100, temperature = 0.8, top_k, top_p, seed = 0, stop, tokenizer, special, before })
---continues a text, of bytes or by a tokenizer, or a list of ids, on the model's device. temperature 0 takes the
---most likely token, top_k samples among so many most likely tokens, top_p among those with this total share. It ends
---before `stop`: a text, an id or a list of ids. Special tokens written in the prompt are ordinary text unless
---`special` is true; `before` = true puts the start of the tokenizer's template, such as <s>, in front of it. Keys
---and values of earlier tokens are cached.
---@param options { layers: integer, heads: integer, width: integer, context: integer, vocab: integer, dropout:
---number, attention_dropout: number, tied: boolean, seed: integer } vocab: 256, dropout: 0, seed: 0;
---attention_dropout, of the attention weights: `dropout`; tied: the head is the token embedding
---@return Module
---@mark ephemeral
local function gpt(options)
  local o = tools.options("rille.nn.gpt", options, { vocab = 256, dropout = 0, attention_dropout = false, seed = 0,
    tied = false }, { "layers", "heads", "width", "context", "vocab" })
  o.attention_dropout = o.attention_dropout or o.dropout
  return nn.with_seed(o.seed, function() return Gpt(o) end)
end

return gpt
