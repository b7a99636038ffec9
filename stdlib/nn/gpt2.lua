-- rille.nn.gpt2: GPT-2 in its published sizes, optionally with the published weights.
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local sizes = {
  ["124M"] = { layers = 12, heads = 12, width = 768 },
  ["355M"] = { layers = 24, heads = 16, width = 1024 },
  ["774M"] = { layers = 36, heads = 20, width = 1280 },
  ["1558M"] = { layers = 48, heads = 25, width = 1600 },
}

local parts = { norm1 = "ln_1", norm2 = "ln_2", ["attention.qkv"] = "attn.c_attn", ["attention.out"] = "attn.c_proj",
  fc = "mlp.c_fc", proj = "mlp.c_proj" }

-- Returns a parameter's name in Hugging Face's files, and whether the file stores the weight transposed: [inputs,
-- outputs].
local function theirs(name)
  if name == "tokens.weight" then return "wte.weight" end
  if name == "positions" then return "wpe.weight" end
  local block, part, kind = name:match("^blocks%.(%d+)%.(.+)%.(%a+)$")
  if not block then return (name:gsub("^norm", "ln_f")) end
  local linear = not part:find("^norm")
  return ("h.%d.%s.%s"):format(block - 1, parts[part], kind), linear and kind == "weight"
end

---GPT-2: `rille.nn.gpt` in a published size, its head tied to the token embedding. `weights` loads Hugging Face's
---safetensors file by name. Without it, the weights are initialised as GPT-2; `vocab = 50304` then multiplies faster
---than 50257.
---@param options? { size: string, weights: string, vocab: integer, context: integer, dropout: number,
---attention_dropout: number, seed: integer } size: "124M" (the default), "355M", "774M", "1558M"; or layers, heads and
---width; vocab: 50257; context: 1024; dropout: 0; attention_dropout: `dropout`
---@return Module
---@mark ephemeral
---@error state the file has other names or shapes, or is of a model with more layers or more in a layer
---@error denied without a grant to read `weights`
local function gpt2(options)
  local size = sizes[options and options.size or "124M"]
  if not size then
    tools.invalid(("rille.nn.gpt2: there is no size '%s'"):format(tostring(options.size)),
      "it comes as 124M, 355M, 774M and 1558M")
  end
  local o = tools.options("rille.nn.gpt2", options, { size = "124M", weights = false, vocab = 50257, context = 1024,
    dropout = 0, attention_dropout = false, seed = 0, layers = size.layers, heads = size.heads, width = size.width },
    { "vocab", "context", "layers", "heads", "width" })
  local model = nn.gpt { layers = o.layers, heads = o.heads, width = o.width, context = o.context, vocab = o.vocab,
    dropout = o.dropout, attention_dropout = o.attention_dropout or o.dropout, seed = o.seed, tied = true }
  if o.weights then tools.adopt(model, "rille.nn.gpt2", o.weights, theirs) end
  return model
end

return gpt2
