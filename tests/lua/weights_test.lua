-- run: ephemeral
-- A model's weights out of files, tensor by tensor: what is in memory beside the model.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()
local nn = rille.nn

local folder = tap.folder()

-- kB of this process, by /proc: VmHWM is the most that was resident since the last reset.
local function status(key)
  for line in io.lines("/proc/self/status") do
    local kb = line:match("^" .. key .. ":%s*(%d+) kB")
    if kb then return tonumber(kb) end
  end
end

local function reset_most()
  local file = io.open("/proc/self/clear_refs", "w")
  local done = file and file:write("5")
  if file then file:close() end
  return done
end

local function sanitized()          -- freed memory stays in quarantine there
  for line in io.lines("/proc/self/maps") do if line:find "libasan" then return true end end
end

-- Layers that take no more memory while they are made.
local Layer = nn.class("Layer", {
  init = function(self, width) self.weight = dev:zeros { width, width }:requires_grad_() end,
  forward = function(self, x) return x:linear(self.weight) end,
})
local Deep = nn.class("Deep", {
  init = function(self, layers, width)
    self.layers = {}
    for i = 1, layers do self.layers[i] = Layer(width) end
  end,
  forward = function(self, x) return self.layers[1](x) end,
})

local layers, width, shards = 20, 2048, 4
local model_bytes = layers * width * width * 4

-- Shards of bf16 with a number in each tensor by which it is known.
local function write_shards()
  local map = {}
  for shard = 1, shards do
    local tensors, file = {}, ("model-%d.safetensors"):format(shard)
    for i = shard, layers, shards do
      local name = ("layers.%d.weight"):format(i)
      tensors[name] = dev:full { width, width, value = i, dtype = "bf16" }
      map[#map + 1] = ('"%s": "%s"'):format(name, file)
    end
    rille.data.save_tensors(folder .. "/" .. file, tensors)
    for _, t in pairs(tensors) do t:free() end
  end
  local index = io.open(folder .. "/model.safetensors.index.json", "w")
  index:write('{"weight_map": {' .. table.concat(map, ", ") .. "}}")
  index:close()
end

tap.test("beside a model of several files there are never more than a few of their tensors", function()
  write_shards()
  local model = Deep(layers, width)
  dev:synchronize()
  local start = dev:memory()
  tap.ok(start.live >= model_bytes and start.peak < model_bytes * 1.2, start.summary)
  local counted = reset_most()
  local before = status "VmHWM"
  model:load_state(folder)
  dev:synchronize()
  local most = dev:memory().peak - start.live
  -- All of bf16 is half of the model; what is promised is 64 MB and the largest tensor.
  tap.ok(most <= 64 * 2^20 + 2 * width * width * 2, ("%d of %d bytes beside the model"):format(most, model_bytes))
  if counted and not sanitized() then
    local grown = (status "VmHWM" - before) * 1024
    tap.ok(grown < model_bytes * 0.4, ("%d resident bytes beside a model of %d"):format(grown, model_bytes))
  end
  for i = 1, layers do
    local weight = model.layers[i].weight
    tap.equal({ weight.dtype, weight:min():item(), weight:max():item() }, { "f32", i, i })
  end
end)

tap.test("a model takes a file, an index and a folder, and says what is missing", function()
  local small, other = Deep(2, 4), Deep(2, 4)
  for i = 1, 2 do small.layers[i].weight:detach():copy_(dev:full { 4, 4, value = i }) end
  local path = folder .. "/small.safetensors"
  rille.data.save_tensors(path, small)
  other:load_state(path)
  for i = 1, 2 do tap.equal(other.layers[i].weight:totable(), small.layers[i].weight:totable()) end
  tap.raises("state", "there is no parameter 'layers.3.weight'", function() Deep(3, 4):load_state(path) end)
  tap.raises("io", "nowhere", function() small:load_state("/nowhere/x.safetensors") end)
  tap.raises("io", "has neither model.safetensors nor its index", function() small:load_state("/proc/self") end)
  tap.raises("invalid", "weights is a table", nn.llama, { layers = 1, heads = 1, width = 4, context = 4, vocab = 4,
    weights = {} })
end)

tap.test("a tensor of a type that is not computed with is named", function()
  local path = folder .. "/eighths.safetensors"
  local header = '{"layers.1.weight":{"dtype":"F8_E4M3","shape":[4,4],"data_offsets":[0,16]}}'
  header = header .. (" "):rep(-#header % 8)
  local file = assert(io.open(path, "wb"))
  file:write(string.char(#header) .. ("\0"):rep(7) .. header .. ("\0"):rep(16))
  file:close()
  tap.raises("invalid", "tensor 'layers.1.weight' of the file is of type F8_E4M3", function()
    Deep(1, 4):load_state(path)
  end)
end)

tap.test("a file whose weights were taken is let go of, in however many rounds", function()
  local model, path = Deep(2, 4), folder .. "/rounds.safetensors"
  rille.data.save_tensors(path, model)
  for _ = 1, 200 do model:load_state(path) end
  for _ = 1, 3 do collectgarbage() end
  local mapped = 0
  for line in io.lines("/proc/self/maps") do if line:find(path, 1, true) then mapped = mapped + 1 end end
  tap.ok(mapped <= 2, mapped .. " mappings of one file")
end)

tap.done()
