-- rille.data: data sets. A data set yields batches, stores its position as one number, and can be restored to it.
local native = require "rille.native"
local rille = require "rille"

local data = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- Makes a class of data sets that wrap a native data set, `_set`. Reading an unknown name raises an error that lists
-- the known names.
local function class(what, methods, names, text)
  return { __tostring = text, __index = function(_, key)
    local found = methods[key]
    if found ~= nil then return found end
    invalid(what .. " has no field or method '" .. tostring(key) .. "'", "it has: " .. table.concat(names, ", "))
  end }
end

---@class Bytes a data set of bytes or tokens
---@field batch integer samples in a batch
---@field context integer bytes or tokens in a sample
---@field device Device where its batches are made
local methods = {}

local Bytes = class("a byte data set", methods, { "next", "validation", "validation_batches", "bigram", "state",
  "load_state", "info", "batch", "context", "device" }, function(self)
  local i = native.bytes_info(self._set)
  return ("%s: %d for training, %d for validation, windows of %d, batches of %d, at sample %d"):format(
    i.training_bytes and "Bytes" or "Tokens", i.training_bytes or i.training_tokens,
    i.validation_bytes or i.validation_tokens, i.context, self.batch, i.cursor)
end)

-- The device for batches: `given` is a device or its name; nil: the default device.
local function device_of(given) return type(given) ~= "userdata" and rille.device(given) or given end

-- Returns this rank and the number of ranks, which decide the samples that the rank reads; 0, 1 without a
-- communicator.
local function share_of(comm)
  if comm == nil then return 0, 1 end
  if type(comm) ~= "userdata" or native.kind(comm) or not comm.world then
    invalid("data:next: expected a communicator, or nothing, got " .. tostring(comm))
  end
  return comm.rank, comm.world
end

---The next batch of training samples: x and y, [batch, context]; y is x shifted by one. u8 for bytes, i32 for tokens.
---With a communicator the ranks share the next `world` batches, and the position advances over all of them: the first
---`batch` samples are rank 0's, the next ones rank 1's. No sample is skipped or repeated, even at the end of an epoch:
---the data continue with the next one.
---@param communicator? Communicator whose ranks share the samples
---@return Tensor x
---@return Tensor y
---@mark ephemeral
function methods:next(communicator)
  local rank, world = share_of(communicator)
  return native.bytes_next(self._set, self.batch, rank, world, self.device)
end

---Validation batch `i`, counting from 1; their order is fixed.
---@param i integer which one, from 1 on
---@return Tensor x
---@return Tensor y
---@mark ephemeral
function methods:validation(i) return native.bytes_validation(self._set, (i - 1) * self.batch, self.batch,
  self.device) end

---The number of whole validation batches before they repeat.
---@return integer
---@mark ephemeral
function methods:validation_batches()
  return math.max(1, math.floor(native.bytes_info(self._set).validation_windows / self.batch))
end

---A baseline: nats per byte, on the validation part, of a smoothed bigram model fitted on the training part. Bytes
---only.
---@return number
---@mark ephemeral
function methods:bigram() return native.bytes_bigram(self._set) end

---The data set's sizes and position.
---@return table  training_bytes, validation_bytes (or .._tokens), training_windows, validation_windows, context, epoch,
---cursor, digest
---@mark ephemeral
function methods:info() return native.bytes_info(self._set) end

---The position, as plain data: for checkpoints.
---@return table
---@mark ephemeral
function methods:state() return native.bytes_state(self._set) end

---Restores the position; raises `state` if the data are different.
---@param state table the result of state()
---@mark ephemeral
function methods:load_state(state) native.bytes_restore(self._set, state) end

local function check_sizes(verb, sizes)
  for name, n in pairs(sizes) do
    if type(n) ~= "number" or n < 1 or n ~= math.floor(n) then
      invalid(("%s: %s = %s; a whole number from 1 on is needed"):format(verb, name, tostring(n)))
    end
  end
end

---Text as a sequence of bytes for next-byte prediction: a file, or all files of a directory in sorted order.
---The order is computed from (seed, epoch), so that the position is one number, independent of the batch size.
---@param path string a file or a directory
---@param options? { batch: integer, context: integer, seed: integer, split: number, shuffle: boolean, device:
---Device|string } 16, 128, 0, 0.1 (the share kept for validation), true, the default device
---@return Bytes
---@mark ephemeral
---@error denied without a grant to read the path
function data.bytes(path, options)
  native.check_options(options, "rille.data.bytes", { "batch", "context", "seed", "split", "shuffle", "device" })
  options = options or {}
  local batch, context = options.batch or 16, options.context or 128
  check_sizes("rille.data.bytes", { batch = batch, context = context })
  local device = device_of(options.device)
  local set = native.bytes(path, { context = context, seed = options.seed or 0, split = options.split or 0.1,
    shuffle = options.shuffle ~= false })
  return setmetatable({ _set = set, batch = batch, context = context, device = device }, Bytes)
end

---@class rille.data.TokensOptions
---@field tokenizer? Tokenizer|string for texts: they are encoded once and cached by their contents
---@field validation? string a separate file or directory for validation
---@field split? number without `validation`: the share at the end kept for it, 0.1
---@field batch? integer 16
---@field context? integer tokens in a sample, 128
---@field seed? integer of the order, 0
---@field shuffle? boolean true
---@field dtype? string "u16" or "u32": of files without a header, "u16"
---@field device? Device|string where batches are made; the default device

---Token ids for next-token prediction: files of ids as written by nanoGPT (raw u16) and llm.c (with a header), or text
---files with `tokenizer`. A directory stands for all its files in sorted order. Files are mapped, so they may be larger
---than memory. Order, position and checkpoints work as for `rille.data.bytes`. A folder that `rille.data.build` made
---has its own validation part.
---@param path string a file or a directory
---@param options? rille.data.TokensOptions what differs from the defaults
---@return Bytes
---@mark ephemeral
---@async
---@error integrity a file is shorter than its header says
---@error denied without a grant to read the path, or the tokenizer
---@example
---local data = rille.data.tokens("fineweb/train", { validation = "fineweb/val", batch = 64, context = 1024 })
---local text = rille.data.tokens("corpus.txt", { tokenizer = "gpt2/tokenizer.json", context = 256 })
function data.tokens(path, options)
  local verb = "rille.data.tokens"
  native.check_options(options, verb, { "tokenizer", "validation", "split", "batch", "context", "seed", "shuffle",
    "dtype", "device" })
  local o = options or {}
  local batch, context = o.batch or 16, o.context or 128
  check_sizes(verb, { batch = batch, context = context })
  local device = device_of(o.device)
  local width = ({ u16 = 2, u32 = 4 })[o.dtype or "u16"]
  if not width then invalid(("%s: dtype = '%s'"):format(verb, tostring(o.dtype)), 'ids are "u16" or "u32"') end
  if type(path) ~= "string" then invalid(verb .. ": expected a path first, got " .. type(path)) end
  local other = o.validation or ""
  if o.tokenizer then
    local from, pattern = o.tokenizer, ""
    if type(from) == "userdata" then from, pattern = from.path, from.pattern end
    path = native.tokenize(path, from, pattern)
    if other ~= "" then other = native.tokenize(other, from, pattern) end
  end
  local set = native.tokens(path, other, { context = context, seed = o.seed or 0, split = o.split or 0.1,
    shuffle = o.shuffle ~= false, width = o.dtype and width or nil })
  return setmetatable({ _set = set, batch = batch, context = context, device = device }, Bytes)
end

---@class rille.data.BuildOptions
---@field sources string|string[] files and folders: texts (.txt, .md, .jsonl ..), or tables (.csv, .tsv); or one folder
---of images, as for `rille.data.images`
---@field to string the folder to make
---@field kind? string "text", "csv" or "images"; by default the sources' names tell
---@field tokenizer? Tokenizer|string of texts: required
---@field field? string of JSONL: the field that has the text, "text"
---@field shard_tokens? integer of texts: a shard ends after so many tokens, 100000000
---@field validation? number of texts: the share of documents for validation, 0
---@field separator? string of texts: the token before each document; by default the tokenizer's end-of-text token;
---"none": no token
---@field missing? number of tables: stands for missing values in columns of numbers
---@field size? integer of images: the pixels of the shorter side of larger ones, which become JPEG of quality 90; by
---default all keep their bytes
---@field shard_bytes? integer of images: a shard ends after so many bytes, 268435456

---Builds a data set from texts, tables or images: `to` then has shards, and `dataset.json`, which is written last.
---Texts become shards of token ids for `rille.data.tokens(to)`; CSV files become columns for `rille.data.arrays(to)`;
---images become WebDataset shards (.tar), in mixed order, for `rille.data.images(to)`. The
---same sources and options give the same bytes, whatever the number of threads. An interrupted build goes on after its
---finished shards, and a finished one is kept.
---@param options rille.data.BuildOptions `sources` and `to` are required
---@return table dataset what dataset.json says: `kind`, `shards`, `train_tokens`, `validation_tokens`, `rows`, `images`
---.. and `kept`, the number of shards that were there before
---@mark ephemeral
---@async
---@error invalid a source is not what it should be: the message names the file and the line
---@error integrity an image is damaged, or a source changed while it was read
---@error state the folder contains something else, or a data set of other options
---@error denied without a grant to read the sources and the tokenizer, and to write and read the folder
---@example
---rille.data.build { sources = "corpus", to = "tokens", tokenizer = "gpt2/tokenizer.json", validation = 0.01 }
---local data = rille.data.tokens("tokens", { batch = 64, context = 1024 })
function data.build(options)
  if type(options) ~= "table" then
    invalid("rille.data.build: expected a table of options, got " .. type(options),
      'rille.data.build { sources = "texts", to = "tokens", tokenizer = "gpt2/tokenizer.json" }')
  end
  local o = {}
  for name, value in pairs(options) do o[name] = value end
  if type(o.sources) == "string" then o.sources = { o.sources } end
  if type(o.tokenizer) == "userdata" then
    o.tokenizer, o.pattern = options.tokenizer.path, options.tokenizer.pattern
  end
  return native.build_data(o)
end

---@class Arrays a data set of arrays
---@field batch integer rows in a batch
---@field device Device where its batches are made
local rows = {}

local Arrays = class("a data set of arrays", rows, { "next", "validation", "validation_batches", "state", "load_state",
  "info", "batch", "device" }, function(self)
  local i = native.arrays_info(self._set)
  return ("Arrays: %d rows for training, %d for validation, batches of %d, at row %d"):format(i.training_rows,
    i.validation_rows, self.batch, i.cursor)
end)

---The next batch of training rows: a tensor for each array, [batch, ..]. With a communicator, this rank's part of the
---next `world` batches, as for bytes.
---@param communicator? Communicator whose ranks share the rows
---@return Tensor ...
---@mark ephemeral
function rows:next(communicator)
  local rank, world = share_of(communicator)
  return native.arrays_next(self._set, self.batch, rank, world, self.device)
end

---Validation batch `i`, counting from 1, in the order of the rows. Images are cropped at the center and not mirrored.
---@param i integer which one, from 1 on
---@return Tensor ...
---@mark ephemeral
function rows:validation(i) return native.arrays_validation(self._set, (i - 1) * self.batch, self.batch,
  self.device) end

---The number of whole validation batches before they repeat.
---@return integer
---@mark ephemeral
function rows:validation_batches()
  return math.max(1, math.floor(native.arrays_info(self._set).validation_rows / self.batch))
end

---The data set's sizes and position.
---@return table  training_rows, validation_rows, epoch, cursor, digest
---@mark ephemeral
function rows:info() return native.arrays_info(self._set) end

---The position, as plain data: for checkpoints.
---@return table
---@mark ephemeral
function rows:state() return native.arrays_state(self._set) end

---Restores the position; raises `state` if the arrays or options are different.
---@param state table the result of state()
---@mark ephemeral
function rows:load_state(state) native.arrays_restore(self._set, state) end

---@class rille.data.ArraysOptions
---@field names? string[] of a file: which of its tensors, in which order
---@field batch? integer 16
---@field seed? integer of the order and the augmentation, 0
---@field shuffle? boolean true
---@field split? number the share of rows at the end that is kept for validation, 0
---@field flip? boolean mirrors images at random
---@field padding? integer zeros around images before they are cropped
---@field device? Device|string where batches are made; the default device
---@field crop? integer|integer[] size of random crops of the images: one number, or { height, width }

---Arrays with corresponding rows, in batches: images and labels, inputs and targets. `source` is a list of tensors, or
---a safetensors file, which is mapped and may be larger than memory, or a folder that `rille.data.build` made of a
---table. With flip, padding or crop the first array must
---hold images [n, channels, height, width]. The order and the augmentation of each image are computed from the seed and
---the position, which is one number: a resumed training sees the same data.
---@param source Tensor[]|string tensors with the same number of rows, or a file
---@param options? rille.data.ArraysOptions what differs from the defaults
---@return Arrays
---@mark ephemeral
---@async
---@error denied without a grant to read the path
---@example
---local data = rille.data.arrays({ images, labels }, { batch = 64, flip = true, padding = 4 })
---local data = rille.data.arrays("cifar.safetensors", { names = { "images", "labels" }, crop = 28 })
function data.arrays(source, options)
  local verb = "rille.data.arrays"
  native.check_options(options, verb, { "names", "batch", "seed", "shuffle", "split", "flip", "padding", "crop",
    "device" })
  local o = options or {}
  check_sizes(verb, { batch = o.batch or 16 })
  if type(source) == "table" then
    local list = {}
    for i, tensor in ipairs(source) do
      if not native.kind(tensor) then
        invalid(("%s: array %d is no tensor but %s"):format(verb, i, tostring(tensor)))
      end
      list[i] = { name = o.names and o.names[i] or tostring(i), tensor = tensor }
    end
    if #list == 0 then invalid(verb .. ": the list of arrays is empty", verb .. "({ images, labels })") end
    source = native.snapshot(list)
  elseif type(source) ~= "string" then
    invalid(verb .. ": expected a list of tensors, or a file, got " .. tostring(source))
  end
  local crop = o.crop or 0
  if type(crop) == "number" then crop = { crop, crop } end
  local set = native.arrays(source, { seed = o.seed or 0, split = o.split or 0, shuffle = o.shuffle ~= false,
    flip = o.flip or false, padding = o.padding or 0, crop_height = crop[1], crop_width = crop[2] }, o.names)
  return setmetatable({ _set = set, batch = o.batch or 16, device = device_of(o.device) }, Arrays)
end

---@class Images a data set of labelled images
---@field batch integer images in a batch
---@field size integer height and width of its images
---@field device Device where its batches are made
local pictures = {}

local Images = class("a data set of images", pictures, { "next", "validation", "validation_batches", "state",
  "load_state", "info", "batch", "size", "device" }, function(self)
  local i = native.images_info(self._set)
  return ("Images: %d for training, %d for validation, %d classes, %d x %d, batches of %d, at image %d"):format(
    i.training_rows, i.validation_rows, i.classes, self.size, self.size, self.batch, i.cursor)
end)

---The next batch of training images: x, f32 [batch, 3, size, size], and y, i32 [batch]. With a communicator, this
---rank's part of the next `world` batches, as for bytes.
---@param communicator? Communicator whose ranks share the images
---@return Tensor x
---@return Tensor y
---@mark ephemeral
---@error integrity an image is damaged; the message names it
function pictures:next(communicator)
  local rank, world = share_of(communicator)
  return native.images_next(self._set, self.batch, rank, world, self.device)
end

---Validation batch `i`, counting from 1; their order is fixed, and the images are cut from the middle.
---@param i integer which one, from 1 on
---@return Tensor x
---@return Tensor y
---@mark ephemeral
---@error integrity an image is damaged; the message names it
function pictures:validation(i) return native.images_validation(self._set, (i - 1) * self.batch, self.batch,
  self.device) end

---The number of whole validation batches before they repeat.
---@return integer
---@mark ephemeral
function pictures:validation_batches()
  return math.max(1, math.floor(native.images_info(self._set).validation_rows / self.batch))
end

---The data set's sizes and position.
---@return table  training_rows, validation_rows, classes, class_names (of class folders; label 0 is the first), epoch,
---cursor, damaged (how many images `skip_damaged` has passed over so far), digest
---@mark ephemeral
function pictures:info() return native.images_info(self._set) end

---The position, as plain data: for checkpoints.
---@return table
---@mark ephemeral
function pictures:state() return native.images_state(self._set) end

---Restores the position; raises `state` if the images or options are different.
---@param state table the result of state()
---@mark ephemeral
function pictures:load_state(state) native.images_restore(self._set, state) end

---@class rille.data.ImagesOptions
---@field batch? integer 16
---@field size? integer height and width of the images in pixels, 224
---@field train? boolean true: shuffled, a random part of each image, half of them mirrored; false: in order, the middle
---@field resize? integer pixels of the shorter side before the middle is cut out, size * 8 / 7
---@field scale? number[] least and largest share of an image's area in its random part, { 0.08, 1 }
---@field seed? integer of the order and the random parts, 0
---@field split? number the share of images that is kept for validation, 0
---@field labels? string the column of MDS, or the field of KEY.json, that has the label
---@field skip_damaged? boolean an image that cannot be decoded is replaced by the next one of the order; false: error
---@field mean? number[] of red, green and blue from 0 to 1, { 0.485, 0.456, 0.406 }
---@field deviation? number[] { 0.229, 0.224, 0.225 }
---@field device? Device|string where batches are made; the default device

---Labelled JPEG and PNG images, in batches that are decoded on all cores ahead of their use. `path` is a folder with a
---folder for each class (sorted by name, from 0), a WebDataset shard (.tar) or a folder of them (KEY.jpg and KEY.cls,
---or a field of KEY.json), as `rille.data.build` makes it, or a folder of MosaicML's MDS (uncompressed). They are read
---where they are. Values are (v / 255 - mean) / deviation. The order and the random part of each image come from the
---seed and the position: they do not depend on threads and ranks, and a resumed training sees the same images.
---@param path string a folder or a .tar file
---@param options? rille.data.ImagesOptions what differs from the defaults
---@return Images
---@mark ephemeral
---@error integrity a shard is damaged; invalid: no images, no labels, a compressed shard
---@error denied without a grant to read the path
---@example
---local data = rille.data.images("imagenet/train", { batch = 256, seed = 1 })
---local test = rille.data.images("imagenet/val", { batch = 256, train = false })
function data.images(path, options)
  local verb = "rille.data.images"
  native.check_options(options, verb, { "batch", "size", "train", "resize", "scale", "seed", "split", "labels",
    "skip_damaged", "mean", "deviation", "device" })
  local o = options or {}
  local batch, size, scale = o.batch or 16, o.size or 224, o.scale or { 0.08, 1 }
  check_sizes(verb, { batch = batch, size = size })
  if type(path) ~= "string" then invalid(verb .. ": expected a path first, got " .. type(path)) end
  for name, count in pairs { scale = 2, mean = 3, deviation = 3 } do
    if o[name] ~= nil and (type(o[name]) ~= "table" or #o[name] ~= count) then
      invalid(("%s: %s = %s; a list of %d numbers is needed"):format(verb, name, tostring(o[name]), count))
    end
  end
  local device = device_of(o.device)
  local set = native.images(path, { size = size, resize = o.resize, train = o.train ~= false, seed = o.seed or 0,
    split = o.split or 0, labels = o.labels, skip_damaged = o.skip_damaged or false, scale_least = scale[1],
    scale_most = scale[2] }, o.mean, o.deviation)
  return setmetatable({ _set = set, batch = batch, size = size, device = device }, Images)
end

---A byte-pair tokenizer from the files that models ship with: Hugging Face's tokenizer.json (byte-level: GPT-2, Llama
---3, Qwen ..; characters: Llama 2, Mistral, TinyLlama ..), a directory with it or with GPT-2's vocab.json and
---merges.txt, or a *.tiktoken file.
---@param path string the file, or the directory
---@param options? { pattern: string } how text is split into words: "gpt2", "cl100k", "llama3", or a regular expression
---(PCRE); required for tiktoken files, other files have their own; not for character vocabularies
---@return Tokenizer
---@mark ephemeral
---@error integrity the file is damaged; invalid: it is of another kind
---@error denied without a grant to read the path
function data.tokenizer(path, options)
  native.check_options(options, "rille.data.tokenizer", { "pattern" })
  return native.tokenizer(path, options and options.pattern)
end

---Reads a safetensors file: all its tensors by name, on the CPU, and its metadata. The file's header is validated
---first: a truncated or foreign file is an `integrity` error. For a model in several files, pass its index
---(`model.safetensors.index.json`) or its folder; a folder without an index must contain `model.safetensors`. All
---tensors are in memory then; `model:load_state(path)` and the models' option `weights` read one tensor at a time
---instead.
---@param path string the file, an index of files, or a folder
---@return table<string, Tensor> tensors
---@return table<string, string> metadata
---@mark ephemeral
---@error integrity an incomplete safetensors file, or tensors that differ from the index; invalid: a type Rille does
---not support; io: a file is missing
---@error denied without a grant to read the path
---@example
--- local weights = rille.data.load_tensors("model.safetensors")
--- print(weights["wte.weight"])
function data.load_tensors(path)
  if type(path) ~= "string" then
    rille.error { kind = "invalid", message = "rille.data.load_tensors: expected a file's name, got " .. type(path) }
  end
  local files, names, metadata = native.tensors_open(path)
  local tensors = {}
  for _, name in ipairs(names) do tensors[name] = files[name] end
  return tensors, metadata
end

-- Checks a list of { name =, tensor = }: names must be unique, and other keys or values raise, since they would be
-- dropped silently.
local function entries(list)
  local seen, count = {}, 0
  for _ in pairs(list) do count = count + 1 end
  for i, entry in ipairs(list) do
    local name = type(entry) == "table" and entry.name
    if type(name) ~= "string" or seen[name] then
      local why = seen[name] and ("is the second '%s'"):format(name) or "has no name"
      rille.error { kind = "invalid", message = ("rille.data.save_tensors: entry %d of the list %s"):format(i, why),
        hint = "list entries are { name =, tensor = }" }
    end
    seen[name] = true
  end
  if count ~= #list then
    rille.error { kind = "invalid",
      message = ("rille.data.save_tensors: %d values, of which %d are a list"):format(count, #list),
      hint = "list entries are { name =, tensor = }; or pass a table of tensors by name" }
  end
  return list
end

---Writes tensors to a safetensors file, atomically. Python's `safetensors` can read it.
---@param path string the file
---@param tensors table<string, Tensor>|Module|{ name: string, tensor: Tensor }[] by name; a module: its
---state; or a list, as from `model:state()`, `model:parameters()` and `opt:state()`
---@param options? { metadata: table<string, string> } texts to store in the file
---@mark ephemeral
---@async
---@error denied without a grant to write the path
function data.save_tensors(path, tensors, options)
  native.check_options(options, "rille.data.save_tensors", { "metadata" })
  if type(path) ~= "string" or type(tensors) ~= "table" then
    rille.error { kind = "invalid", message = "rille.data.save_tensors: expected a file's name and a table of tensors",
      hint = 'rille.data.save_tensors("model.safetensors", model)' }
  end
  local list = {}
  if tensors.parameters and getmetatable(tensors) then
    list = tensors:state()
  elseif type(tensors[1]) == "table" then
    list = entries(tensors)
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
