-- Internal: the multi-rank part of rille.train. All ranks start with the state of rank 0, each rank takes its share
-- of the data, gradients and losses become those of the whole batch, and an error at one rank ends all ranks. Without
-- a communicator, or with one rank, the same methods do the work of a single process.
local native = require "rille.native"
local rille = require "rille"
local meters = require "rille.tools.meter"
local places = require("rille.tools.places").of

local Ranks = {}
Ranks.__index = Ranks

local ranks = {}

local function is_optimizer(value) return type(value) == "userdata" and native.kind(value) == nil end

-- Returns the models and optimizers of a training, found in the options `model`, `optimizer` and `checkpoint.state`.
local function trained(options)
  local models, optimizers = {}, {}
  local function add(item)
    if meters.is_module(item) then models[#models + 1] = item
    elseif is_optimizer(item) then optimizers[#optimizers + 1] = item end
  end
  add(options.model)
  add(options.optimizer)
  for _, item in pairs(options.checkpoint and options.checkpoint.state or {}) do
    if item ~= options.model and item ~= options.optimizer then add(item) end
  end
  return models, optimizers
end

local function joined(...)
  local out = {}
  for _, list in ipairs { ... } do for _, item in ipairs(list) do out[#out + 1] = item end end
  return out
end

-- Returns the models' tensors that are not parameters: running means of norms.
local function buffers_of(models)
  local out = {}
  for _, model in ipairs(models) do
    local trains = {}
    for _, p in ipairs(model:parameters()) do trains[p.name] = true end
    for _, s in ipairs(model:state()) do if not trains[s.name] then out[#out + 1] = s.tensor end end
  end
  return out
end

-- options: the options of rille.train.
function ranks.new(options)
  local comm = options.communicator
  if comm == nil then return setmetatable({ rank = 0, world = 1 }, Ranks) end
  local models, optimizers = trained(options)
  local averaging, count = native.averaging_of(comm, joined(models, optimizers))
  if count == 0 then
    rille.error { kind = "invalid",
      message = "rille.train: with a communicator it must know whose gradients to average",
      hint = "model = model, or optimizer = opt, or both in checkpoint.state" }
  end
  local self = setmetatable({ comm = comm, rank = comm.rank, world = comm.world, averaging = averaging,
    parameters = count, models = models, optimizers = optimizers, options = options,
    shares = options.share_data ~= false }, Ranks)
  if self.world > 1 then
    self.device, self.buffers = rille.device(comm.device), buffers_of(models)
  end
  return self
end

-- Raises an error that every rank detects independently: the communicator stays usable.
function Ranks:raise(what)
  self.agreed = true
  rille.error(what)
end

-- Calls body(..); an error in it also ends the other ranks, with the error's message.
function Ranks:together(body, ...)
  if self.world == 1 then return body(...) end
  local result = { xpcall(body, native.trace, ...) }
  if result[1] then return unpack(result, 2) end
  if not self.agreed then native.ranks_fail(self.comm, result[2]) end
  error(result[2], 0)
end

-- Gathers a list of numbers from each rank; returns one list per rank.
function Ranks:gather(numbers)
  return self.comm:all_gather(self.device:tensor({ numbers }, { dtype = "f64" })):totable()
end

-- Returns a text as a tensor of `size` numbers, one for each byte; and the text of `size` such numbers after `from`.
local function tensor_of(self, text, size)
  local bytes = {}
  for i = 1, size do bytes[i] = text:byte(i) or 0 end
  return self.device:tensor(bytes, { dtype = "i32" })
end
local function text_of(bytes, from, size)
  local parts = {}
  for i = 1, size, 1000 do
    parts[#parts + 1] = string.char(unpack(bytes, from + i, from + math.min(i + 999, size)))
  end
  return table.concat(parts)
end

-- Sends rank 0's plain data `value` to all ranks; returns it.
function Ranks:tell(value)
  local text = self.rank == 0 and native.plain_text(value) or ""
  local size = self:gather({ #text })[1][1]
  return native.plain_value(text_of(self.comm:broadcast(tensor_of(self, text, size)):totable(), 0, size))
end

-- Returns the texts of all ranks, in their order.
function Ranks:collect(text)
  local sizes, most, texts = self:gather { #text }, 0, {}
  for _, size in ipairs(sizes) do most = math.max(most, size[1]) end
  local all = self.comm:all_gather(tensor_of(self, text, most)):totable()
  for rank = 1, self.world do texts[rank] = text_of(all, (rank - 1) * most, sizes[rank][1]) end
  return texts
end

local names = { "steps", "checkpoint.every", "evaluate_every", "the update's accumulate", "parameters" }

-- Checks options that must agree on all ranks; otherwise the ranks would wait for each other forever.
function Ranks:compare()
  local o = self.options
  local update = o.update
  local all = self:gather { o.steps, o.checkpoint and (o.checkpoint.every or 50) or 0,
    o.evaluate and o.evaluate_every or 0, type(update) == "table" and rawget(update, "accumulate") or 1,
    self.parameters }
  for rank = 1, self.world - 1 do
    for i, name in ipairs(names) do
      local here, there = all[1][i], all[rank + 1][i]
      if here ~= there then
        self:raise { kind = "invalid", message = ("rille.train: rank %d has %s = %g, rank 0 has %g"):format(rank, name,
          there, here), hint = "all ranks train with the same options" }
      end
    end
  end
end

-- Returns a rank's random state, derived from rank 0's. It must differ between ranks, or dropout would be equal on
-- all ranks.
local function random_of(state, rank)
  return { seed = (state.seed + rank * 2654435761) % 2 ^ 53, step = state.step, index = state.index }
end

-- Rank 0 calls restore(), which may load a checkpoint, and sends its state to all ranks. Returns restore()'s result.
function Ranks:begin(restore)
  if self.world == 1 then return restore() end
  self:compare()
  local state = places(self.options.checkpoint and self.options.checkpoint.state or {})
  local told, failure
  if self.rank == 0 then
    local ok, got = pcall(restore)
    if ok then
      told = { start = got, random = rille.device():random_state(), there = self.device:random_state(), data = {} }
      for _, place in ipairs(state) do if place.kind == "data" then told.data[place.name] = place.item:state() end end
    else
      failure = got
      local known = type(got) == "table" and got or { kind = "invalid", message = tostring(got) }
      told = { failed = { kind = known.kind, message = "rank 0: " .. known.message, hint = known.hint } }
    end
  end
  told = self:tell(told)
  if failure then
    self.agreed = true
    error(failure, 0)
  end
  if told.failed then self:raise(told.failed) end
  for _, model in ipairs(self.models) do self.comm:broadcast(model) end
  for _, opt in ipairs(self.optimizers) do
    self.comm:broadcast(opt)
    self.comm:broadcast(opt:state())
  end
  for _, place in ipairs(state) do
    if place.kind == "ema" then self.comm:broadcast(place.item:state()) end
    if place.kind == "data" and self.rank > 0 then place.item:load_state(told.data[place.name]) end
  end
  if self.rank > 0 then
    rille.device():set_random_state(random_of(told.random, self.rank))
    self.device:set_random_state(random_of(told.there, self.rank))
  end
  return told.start
end

-- Wraps `update` so that the gradients are averaged over the ranks at the end of each backward().
function Ranks:averaged(update)
  if self.world == 1 then return update end
  return function(...)
    native.averaging(self.averaging)
    local result = { xpcall(update, native.trace, ...) }
    native.averaging(nil)
    if not result[1] then error(result[2], 0) end
    return unpack(result, 2)
  end
end

-- Returns this rank's batch. Data sets of rille.data read only the rank's share; from other data each rank draws
-- every rank's batch and keeps one.
function Ranks:next(data)
  if self.world == 1 or not self.shares then return { data:next() } end
  if type(data) == "table" and rawget(data, "_set") ~= nil then return { data:next(self.comm) } end
  local mine
  for rank = 0, self.world - 1 do
    local batch = { data:next() }
    if batch[1] == nil then
      self:raise { kind = "state", message = ("rille.train: data:next() has no batch left for rank %d"):format(rank),
        hint = "one step takes a batch for each of the " .. self.world ..
          " ranks: use fewer steps, or data that start over" }
    end
    if rank == self.rank then mine = batch end
  end
  return mine
end

-- Returns the mean of all ranks' losses, summed in the order of ranks; with `saver`, the least of the ranks' seconds
-- until a preemption, nil without a notice; the ranks whose loss is not finite; and how many ranks still write their
-- share of a checkpoint.
function Ranks:loss(total, parts, saver)
  if self.world == 1 then return total:item() / parts end
  local notice = saver and rille.preempting()
  local writes = saver and saver.share and saver.share:writing() and 1 or 0
  local mine = (total:detach():to("f64") / parts):reshape(1)
  local known = self.device:tensor({ notice or math.huge, writes }, { dtype = "f64" })
  local all = self.comm:all_gather(mine:cat(known)):totable()
  local sum, soonest, bad, writing = 0, math.huge, {}, 0
  for rank = 0, self.world - 1 do
    local loss = all[3 * rank + 1]
    sum, soonest, writing = sum + loss, math.min(soonest, all[3 * rank + 2]), writing + all[3 * rank + 3]
    if loss ~= loss then bad[#bad + 1] = tostring(rank) end
  end
  local where = #bad > 0 and (" at rank%s %s"):format(#bad > 1 and "s" or "", table.concat(bad, ", ")) or nil
  return sum / self.world, soonest < math.huge and soonest or nil, where, writing
end

-- Copies rank 0's running means to all ranks: they differ between ranks, and evaluations and checkpoints use rank
-- 0's.
function Ranks:same_buffers()
  if self.world > 1 and #self.buffers > 0 then self.comm:broadcast(self.buffers) end
end

function Ranks:finish()
  if self.world > 1 then self.comm:barrier() end
end

-- Returns the sums over all ranks of `total` and `count`, for a mean.
function ranks.sum(comm, total, count)
  if comm.world == 1 then return total, count end
  local all = setmetatable({ comm = comm, device = rille.device(comm.device) }, Ranks):gather { total, count }
  total, count = 0, 0
  for _, one in ipairs(all) do total, count = total + one[1], count + one[2] end
  return total, count
end

return ranks
