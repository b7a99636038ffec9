-- rille.nn.bert: the encoder of BERT, with its masked-language-model head.
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { deviation = 0.02 }) end

local Block = nn.class("BertBlock", {
  init = function(self, o)
    self.attention = nn.attention(o.width, o.heads, { fused = false, deviation = 0.02,
      dropout = o.attention_dropout })
    self.norm1, self.norm2 = nn.layer_norm(o.width, { eps = 1e-12 }), nn.layer_norm(o.width, { eps = 1e-12 })
    self.fc, self.proj = linear(o.width, 4 * o.width), linear(4 * o.width, o.width)
    self.dropout = nn.dropout(o.dropout)
  end,
  forward = function(self, x, lengths)
    x = self.norm1(x + self.dropout(self.attention(x, { lengths = lengths })))
    return self.norm2(x + self.dropout(self.proj(self.fc(x):gelu("none"))))
  end,
})

local Bert = nn.class("Bert", {
  init = function(self, o)
    self.context, self.vocab = o.context, o.vocab
    self.tokens, self.places, self.segments = nn.embedding(o.vocab, o.width), nn.embedding(o.context, o.width),
      nn.embedding(2, o.width)
    self.norm, self.dropout = nn.layer_norm(o.width, { eps = 1e-12 }), nn.dropout(o.dropout)
    self.blocks = {}
    for i = 1, o.layers do self.blocks[i] = Block(o) end
    self.head = { fc = linear(o.width, o.width), norm = nn.layer_norm(o.width, { eps = 1e-12 }),
      bias = rille.device():zeros { o.vocab, requires_grad = true } }
  end,
  -- nn.bert's documentation describes encode.
  encode = function(self, ids, options)
    require("rille.native").check_options(options, "model:encode", { "segments", "lengths" })
    local o, length = options or {}, tools.length_of(self, ids)
    local x = self.tokens(ids) + self.places.weight:narrow(1, 1, length)
    x = x + (o.segments and self.segments(o.segments) or self.segments.weight:select(1, 1))
    x = self.dropout(self.norm(x))
    for _, block in ipairs(self.blocks) do x = block(x, o.lengths) end
    return x
  end,
  forward = function(self, ids, options)
    local x = self:encode(ids, options)
    x = self.head.norm(self.head.fc(x):gelu("none"))
    return x:linear(self.tokens.weight, self.head.bias)
  end,
})

local whole = { ["tokens.weight"] = "embeddings.word_embeddings.weight",
  ["places.weight"] = "embeddings.position_embeddings.weight",
  ["segments.weight"] = "embeddings.token_type_embeddings.weight",
  ["norm.weight"] = "embeddings.LayerNorm.weight", ["norm.bias"] = "embeddings.LayerNorm.bias",
  ["head.fc.weight"] = "cls.predictions.transform.dense.weight",
  ["head.fc.bias"] = "cls.predictions.transform.dense.bias",
  ["head.norm.weight"] = "cls.predictions.transform.LayerNorm.weight",
  ["head.norm.bias"] = "cls.predictions.transform.LayerNorm.bias", ["head.bias"] = "cls.predictions.bias" }
local parts = { ["attention.q"] = "attention.self.query", ["attention.k"] = "attention.self.key",
  ["attention.v"] = "attention.self.value", ["attention.out"] = "attention.output.dense",
  norm1 = "attention.output.LayerNorm", fc = "intermediate.dense", proj = "output.dense", norm2 = "output.LayerNorm" }

local function theirs(name)
  if whole[name] then return whole[name] end
  local block, part, kind = name:match("^blocks%.(%d+)%.(.+)%.(%a+)$")
  return ("encoder.layer.%d.%s.%s"):format(block - 1, parts[part], kind)
end

---BERT: an encoder with post-layer norm, and a masked-language-model head, tied to the token embedding. Called with ids
---[batch, length], it returns logits [batch, length, vocab]; model:encode(ids) returns [batch, length, width]. Both
---take { segments = ids of 0 and 1, lengths = [batch] } for pairs and for padded texts. `weights` loads Hugging Face's
---safetensors file (BertForMaskedLM) by name.
---@param options? { layers: integer, heads: integer, width: integer, context: integer, vocab: integer, dropout:
---number, attention_dropout: number, weights: string, seed: integer } BERT-base: 12, 12, 768, 512, 30522, 0.1;
---attention_dropout, of the attention weights: `dropout`; seed 0
---@return Module
---@mark ephemeral
---@error state the file has other names or shapes, or is of a model with more layers or more in a layer
---@error denied without a grant to read `weights`
local function bert(options)
  local o = tools.options("rille.nn.bert", options, { layers = 12, heads = 12, width = 768, context = 512,
    vocab = 30522, dropout = 0.1, attention_dropout = false, weights = false, seed = 0 }, { "layers", "heads", "width",
    "context", "vocab" })
  o.attention_dropout = o.attention_dropout or o.dropout
  local model = nn.with_seed(o.seed, function() return Bert(o) end)
  if o.weights then tools.adopt(model, "rille.nn.bert", o.weights, theirs) end
  return model
end

return bert
