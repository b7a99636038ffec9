-- rille.data: data sets. A data set gives batches, knows its position as one number, and can be put back there.
local native = require "rille.native"
local rille = require "rille"

local data = {}

local Bytes = {}
local methods = {}

local names = { "next", "validation", "validation_batches", "bigram", "state", "load_state", "info", "batch",
  "context" }

Bytes.__index = function(self, key)
  local found = methods[key]
  if found ~= nil then return found end
  rille.error { kind = "invalid", message = "a byte data set has no field or method '" .. tostring(key) .. "'",
    hint = "it has: " .. table.concat(names, ", ") }
end

Bytes.__tostring = function(self)
  local i = native.bytes_info(self._set)
  return ("Bytes: %d for training, %d for validation, windows of %d, batches of %d, at sample %d"):format(
    i.training_bytes, i.validation_bytes, i.context, self.batch, i.cursor)
end

---The next batch of training samples: x and y, u8 [batch, context]; y is x moved on by one byte.
---@return Tensor x
---@return Tensor y
---@mark ephemeral
function methods:next() return native.bytes_next(self._set, self.batch) end

---Validation batch `i`, counting from 1; they come in one fixed order.
---@param i integer which one, from 1 on
---@return Tensor x
---@return Tensor y
---@mark ephemeral
function methods:validation(i) return native.bytes_validation(self._set, (i - 1) * self.batch, self.batch) end

---How many whole validation batches there are before they repeat.
---@return integer
---@mark ephemeral
function methods:validation_batches()
  return math.max(1, math.floor(native.bytes_info(self._set).validation_windows / self.batch))
end

---The score to beat: nats per byte, on the validation part, of a smoothed bigram model fitted on the training part.
---@return number
---@mark ephemeral
function methods:bigram() return native.bytes_bigram(self._set) end

---@return table  training_bytes, validation_bytes, training_windows, validation_windows, context, epoch, cursor, digest
---@mark ephemeral
function methods:info() return native.bytes_info(self._set) end

---Where it stands, as plain data: for checkpoints.
---@return table
---@mark ephemeral
function methods:state() return native.bytes_state(self._set) end

---Puts it back; raises `state` when the data are others.
---@param state table models, optimizers and data sets: a list, or a table with names
---@mark ephemeral
function methods:load_state(state) native.bytes_restore(self._set, state) end

---Text as a sequence of bytes for next-byte prediction: a file, or all files of a directory in sorted order.
---The order is computed from (seed, epoch), so that the position is one number whatever the batch size.
---@param path string a file or a directory
---@param options? { batch: integer, context: integer, seed: integer, split: number, shuffle: boolean } 16, 128, 0,
---0.1 (the share kept for validation), true
---@return Bytes
---@mark ephemeral
function data.bytes(path, options)
  native.check_options(options, "rille.data.bytes", { "batch", "context", "seed", "split", "shuffle" })
  options = options or {}
  local batch, context = options.batch or 16, options.context or 128
  for name, n in pairs { batch = batch, context = context } do
    if type(n) ~= "number" or n < 1 or n ~= math.floor(n) then
      rille.error { kind = "invalid",
        message = ("rille.data.bytes: %s = %s; a whole number from 1 on is needed"):format(name, tostring(n)) }
    end
  end
  local set = native.bytes(path, { context = context, seed = options.seed or 0, split = options.split or 0.1,
    shuffle = options.shuffle ~= false })
  return setmetatable({ _set = set, batch = batch, context = context }, Bytes)
end

---A byte-pair tokenizer from the files that models come with: tokenizer.json of Hugging Face (byte-level: GPT-2,
---Llama 3, Qwen ..), a directory with it or with GPT-2's vocab.json and merges.txt, or a *.tiktoken file.
---@param path string the file, or the directory
---@param options? { pattern: string } how words are cut: "gpt2", "cl100k", "llama3", or a regular expression (PCRE);
---a tiktoken file needs it, the others have their own
---@return Tokenizer
---@mark ephemeral
---@error integrity the file is damaged; invalid: it is of another kind
function data.tokenizer(path, options)
  native.check_options(options, "rille.data.tokenizer", { "pattern" })
  return native.tokenizer(path, options and options.pattern)
end

---Reads a safetensors file: all its tensors by their names, on the CPU, and its metadata. The form of the file is
---checked first: a torn or foreign file is an `integrity` error.
---@param path string the file
---@return table<string, Tensor> tensors
---@return table<string, string> metadata
---@mark ephemeral
---@error integrity not a whole safetensors file; invalid: a type that Rille does not compute with
---@example
--- local weights = rille.data.load_tensors("model.safetensors")
--- print(weights["wte.weight"])
function data.load_tensors(path)
  if type(path) ~= "string" then
    rille.error { kind = "invalid", message = "rille.data.load_tensors: expected a file's name, got " .. type(path) }
  end
  return native.tensors_load(path)
end

---Writes tensors as a safetensors file, whole or not at all. Python's `safetensors` reads it.
---@param path string the file
---@param tensors table<string, Tensor>|Module by name; of a module: its parameters
---@param options? { metadata: table<string, string> } texts that the file carries
---@mark ephemeral
---@async
function data.save_tensors(path, tensors, options)
  native.check_options(options, "rille.data.save_tensors", { "metadata" })
  if type(path) ~= "string" or type(tensors) ~= "table" then
    rille.error { kind = "invalid", message = "rille.data.save_tensors: expected a file's name and a table of tensors",
      hint = 'rille.data.save_tensors("model.safetensors", model)' }
  end
  local list = {}
  if tensors.parameters and getmetatable(tensors) then
    list = tensors:state()
  else
    for name, tensor in pairs(tensors) do list[#list + 1] = { name = name, tensor = tensor } end
  end
  for _, entry in ipairs(list) do
    if not native.kind(entry.tensor) then
      rille.error { kind = "invalid", message = ("rille.data.save_tensors: '%s' is no tensor but %s"):format(
        tostring(entry.name), tostring(entry.tensor)) }
    end
  end
  native.tensors_save(native.snapshot(list), path, options and options.metadata or {})
end

return data
