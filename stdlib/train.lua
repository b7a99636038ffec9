-- rille.train: the loop around an update function. It takes batches, logs, checkpoints and evaluates. After a crash it
-- continues from the newest complete checkpoint in the work directory and reaches the same losses as an undisturbed
-- run.
local native = require "rille.native"
local rille = require "rille"
local checkpoint = require "rille.checkpoint"
local numbers = require "rille.device.check_numbers"
local meters = require "rille.tools.meter"
local random = require "rille.tools.random"
local ranks_of = require "rille.tools.ranks"
local shares = require "rille.tools.shares"
local tools = require "rille.nn.tools"

local train = {}

local known = { "update", "data", "steps", "checkpoint", "evaluate", "evaluate_every", "log_every", "schedule",
  "optimizer", "check_numbers", "workload", "model", "communicator", "share_data" }

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- Whether the value has a method `next`. The objects of rille.data raise for a missing field.
local function gives_batches(data)
  local ok, next_of = pcall(function() return data.next end)
  return ok and type(next_of) == "function"
end

local function check(options)
  native.check_options(options, "rille.train", known)
  if type(options) ~= "table" then
    invalid("rille.train: expected a table of options", "rille.train { update = update, data = data, steps = 300 }")
  end
  if type(options.update) ~= "function" and not (getmetatable(options.update) or {}).__call then
    invalid("rille.train: update is missing: a function of a batch that gives the loss")
  end
  if options.data == nil then invalid("rille.train: data is missing", "data = rille.data.bytes(\"corpus\")") end
  if not gives_batches(options.data) then
    local data = type(options.data) == "table" and rille.inspect(options.data) or tostring(options.data)
    invalid(("rille.train: data = %s: it has no method next"):format(data),
      "a data set has one, as from rille.data.bytes(\"corpus\"); of your own: "
        .. "data = { next = function(self) return x, y end }")
  end
  if type(options.steps) ~= "number" or options.steps < 1 or options.steps % 1 ~= 0 then
    invalid("rille.train: steps = " .. tostring(options.steps) .. "; a whole number from 1 on is needed")
  end
  if options.schedule and not options.optimizer then
    invalid("rille.train: a schedule needs the optimizer whose rate it sets", "optimizer = opt")
  end
  if options.workload ~= nil and (type(options.workload) ~= "string" or options.workload == "") then
    invalid("rille.train: workload = " .. tostring(options.workload) .. "; a name is needed")
  end
  if options.model ~= nil and not meters.is_module(options.model) then
    invalid("rille.train: model = " .. tostring(options.model) .. "; a module is needed")
  end
  local save = options.checkpoint
  native.check_options(save, "rille.train's checkpoint", { "every", "state", "keep", "keep_every", "directory", "dir",
    "store" })
  if save and type(save.state) ~= "table" then
    invalid("rille.train: checkpoint.state is missing", "state = { model, opt, data }")
  end
end

-- Writes one checkpoint at a time, in parallel with the training. Of several ranks each writes a share, if they see one
-- folder or their machines send checkpoints to a store; otherwise rank 0 writes, and the others only take part in
-- collective operations.
local Saver = {}
Saver.__index = Saver

local function saver(options, ranks)
  return setmetatable({ options = options, ranks = ranks, directory = options.directory or options.dir or "checkpoints",
    saves = 0, every = options.every or 50, keep = options.keep or 3, keep_every = options.keep_every or 0 }, Saver)
end

-- Opens the store, if there is one, and brings its newest checkpoint here if it is newer than those here.
function Saver:open(name)
  self.stored = self.options.store and native.stored_open(self.options.store, name)
  local found = self.stored and
    native.stored_fetch(self.stored, self.directory, native.checkpoint_newest(self.directory))
  for _, fault in ipairs(found and found.skipped or {}) do print("checkpoint skipped: " .. fault) end
end

-- Failures that may be over when the next checkpoint is sent.
local passing = { network = true, timeout = true, quota = true }

-- Whether the upload is over; waits for its end if told so.
function Saver:sent(wait)
  if not self.upload then return true end
  local ok, done = pcall(wait and native.stored_wait or native.stored_poll, self.upload)
  if ok and not done then return false end
  self.upload, self.failed = nil, not ok and done or nil
  if ok then
    native.emit { event = "checkpoint_kept", step = done.step, directory = done.directory }
  elseif type(done) == "table" and passing[done.kind] then
    print("the checkpoint was not sent to the store: " .. done.message)
  else
    error(done, 0)
  end
  return true
end

-- Begins to send the newest checkpoint that was not sent yet, after a pause, unless one is under way.
function Saver:send(pause_ms)
  if not self:sent() or not self.unsent then return end
  local done = self.unsent
  if self.saves - done.number >= self.keep then return end -- the next one replaces it, and will be sent
  self.upload = native.stored_send(self.stored, done.directory, done.step, self.keep, self.keep_every, pause_ms or 0)
  self.newest, self.unsent = done, nil
end

-- How often the last checkpoint is sent again if it fails for a reason that may pass.
local again_max, first_pause_ms = 3, 500

-- Waits until the newest checkpoint is in the store.
function Saver:settle_store()
  local again = 0
  repeat
    self:sent(true)
    local pause_ms
    if self.failed and not self.unsent and again < again_max then
      self.unsent, pause_ms, again = self.newest, first_pause_ms * 2 ^ again, again + 1
    end
    self:send(pause_ms)
  until not self.upload
  if self.failed then error(self.failed, 0) end
end

function Saver:published(done)
  self.write, self.last, self.cost = nil, done, native.clock() - self.began
  done.number = self.saves
  if self.place then self.place.manifest = done.manifest end
  native.emit { event = "checkpoint", step = done.step, directory = done.directory, size_bytes = done.size_bytes,
    keep = self.keep, keep_every = self.keep_every, share = self.place }
  if self.stored then
    self.unsent = done
    self:send()
  end
end

-- Called on every rank when all shares are written.
function Saver:publish()
  local share = self.share
  self.share = nil
  self.write, self.place = share:publish()
  if self.place and self.ranks.rank > 0 then
    native.emit { event = "checkpoint", step = self.step, directory = self.place.directory, share = self.place }
  end
end

-- `writing`: how many ranks still write their share, as all ranks know it.
function Saver:poll(writing)
  if self.share and writing == 0 then self:publish() end
  local done = self.write and checkpoint.done(self.write)
  if done then self:published(done) end
  if self.stored then self:send() end
end

function Saver:settle()
  if self.write then self:published(checkpoint.wait(self.write)) end
end

-- The same, called on every rank: waits for the shares of all.
function Saver:settle_shares()
  if self.share then
    self.share:wait()
    self.ranks:finish()
    self:publish()
  end
  self:settle()
end

function Saver:save(step, losses)
  self:settle_shares()
  self.saves = self.saves + 1
  -- The checkpoint that is being sent must not be removed as too old meanwhile.
  if self.upload and self.saves - self.newest.number >= self.keep then self:sent(true) end
  self.ranks:same_buffers()
  self.began, self.step = native.clock(), step
  local options = { directory = self.directory, step = step, keep = self.options.keep,
    keep_every = self.options.keep_every, metadata = { losses = losses } }
  if self.ranks.world > 1 and not self.alone then
    self.share = shares.begin(self.ranks, self.options.state, options, self.options.store)
    self.alone = self.share == nil
  end
  if self.ranks.rank > 0 or self.share then return end
  self.write = checkpoint.begin(self.options.state, options)
end

-- Whether the notice that the machine will be preempted in `left` seconds (nil: there is none) is a new one: the first,
-- one after a notice that was withdrawn, or one for a later time.
function Saver:new_notice(left)
  local before = self.noticed
  if before and left == 0 then return false end
  self.noticed = left and native.clock() + left
  return left and (not before or self.noticed > before + 1)
end

-- Called when the machine will be preempted in `left` seconds: writes a checkpoint now, besides the scheduled ones.
-- If another machine continues the call, the training ends after this checkpoint, unless it can finish in half of the
-- time left. A second checkpoint is written only if there is ample time; otherwise the next machine repeats the few
-- steps since the first one.
function Saver:preempted(step, losses, left, leave, seconds_to_go)
  local new = self:new_notice(left)
  if not left then return end
  local leaves = leave and seconds_to_go > left / 2
  self:poll()
  if (new or (leaves and not self.write and self.cost < left / 4)) and self.step ~= step then
    self:save(step, losses)
  end
  if not leaves then return end
  self:settle()
  self:settle_store()
  print(("leaves at step %d: this machine will be taken away in %d s"):format(step, left))
  rille.leave()
end

-- Returns a function that reports tokens or samples per second over the last steps, and the time left, for the
-- progress line.
local function meter(first, steps)
  local began, told = native.clock(), 0
  return function(step, loss, items, unit, measured)
    local now = native.clock()
    if now - told < 0.2 and step < steps then return end
    told = now
    local rate = (step - first) / math.max(1e-9, now - began)
    rille.progress { what = "train", done = step, total = steps, unit = "steps", loss = loss, rate = rate * items,
      rate_unit = unit, measured = measured,
      seconds_left = (steps - step) / math.max(rate, 1e-9) }
  end, function(step) return (steps - step) * (native.clock() - began) / math.max(1, step - first) end
end

-- Returns a function that keeps loss, learning rate and speed as metrics: of each step at first, then of fewer, so that
-- a training of weeks stays within the file's limit.
local function recorder(first)
  local told, count, before = -math.huge, 0, { step = first, at = native.clock() }
  return function(step, last, values)
    local now = native.clock()
    local pause = count < 2000 and 0 or count < 10000 and 0.2 or 5
    if now - told < pause and not last then return end
    rille.metric("loss", values.loss, { step = step })
    if values.lr then rille.metric("lr", values.lr, { step = step }) end
    local rate = values.items * (step - before.step) / math.max(1e-9, now - before.at)
    rille.metric(values.unit .. "/s", rate, { step = step })
    told, count, before = now, count + 1, { step = step, at = now }
  end
end

-- The most losses to keep: they are part of every checkpoint and of the result, so older ones are thinned out.
local losses_max = 2000

local function note(losses, step, loss)
  if #losses >= losses_max then
    for i = 1, losses_max / 2 do losses[i] = losses[2 * i - 1] end
    for i = losses_max / 2 + 1, losses_max do losses[i] = nil end
  end
  losses[#losses + 1] = { step = step, loss = loss }
end

-- Called on every rank with the least of all ranks' seconds until a preemption: writes a checkpoint at a new notice.
-- The ranks depend on each other, so no rank leaves the training by itself.
function Saver:announced(step, losses, left)
  if self:new_notice(left) and self.step ~= step then self:save(step, losses) end
end

-- Runs an evaluation without changing the training's random numbers. If it fails, waits for the checkpoint that is
-- being written, so that a restarted training repeats no more steps than needed.
local function aside(save, fn, ...)
  local before = random.state()
  local ok, result = pcall(fn, ...)
  random.restore(before)
  if ok then return end
  if save then pcall(save.settle, save) end
  error(result, 0)
end

-- Returns the summed losses of one step's batches, and the first tensor of the last batch.
local function sum_of_losses(call, ranks, data, parts)
  local total, batch
  for _ = 1, parts do
    batch = ranks:next(data)
    local result = call(unpack(batch))
    if native.kind(result) == nil then
      invalid("rille.train: update gave " .. tostring(result) .. " instead of the loss, a tensor")
    end
    total = total and total + result or result
  end
  return total, batch[1]
end

-- A checkpoint that does not fit is that of another training, which its script need not know of.
local function not_of_this(fault, save)
  if type(fault) ~= "table" or fault.kind ~= "state" or not save.options.state then return fault end
  local where = save.stored and "the store" or "'" .. save.directory .. "'"
  fault.hint = (fault.hint and fault.hint .. "; " or "") .. ("it is of a checkpoint in %s, from which the training "
    .. "would go on: give it another place or name to begin anew"):format(where)
  return fault
end

-- Returns the state in the newest checkpoint; without a checkpoint, step 0.
local function restore(save, name)
  if save then save:open(name) end
  if not (save and checkpoint.exists(save.directory)) then return { step = 0, losses = {} } end
  local ok, found = pcall(checkpoint.load, save.options.state, save.directory)
  if not ok then error(not_of_this(found, save), 0) end
  save.last = found
  rille.log("training goes on from a checkpoint", { step = found.step, directory = found.directory })
  return { step = found.step, losses = found.metadata.losses or {} }
end

local function not_a_number(ranks, step, where)
  ranks:raise { kind = "state", message = ("the loss became NaN or infinite at step %d%s"):format(step, where or ""),
    hint = "lower the learning rate, or clip gradients: rille.optim.clip_grad_norm; check_numbers = true finds " ..
      "the operation that caused it" }
end

-- Makes the meter that measures the speed of steps, for the model in the options or in the checkpoint's state.
local function measuring(options, unit)
  local model = options.model
  for _, part in pairs(options.checkpoint and options.checkpoint.state or {}) do
    model = model or (meters.is_module(part) and part or nil)
  end
  return meters.new { workload = options.workload, unit = unit, model = model }
end

local function run(options, ranks)
  local steps, log_every, data = options.steps, options.log_every or 10, options.data
  local save, first_rank = options.checkpoint and saver(options.checkpoint, ranks), ranks.rank == 0
  local start = ranks:begin(function() return restore(save, options.workload or "train") end)
  local first, losses, loss = start.step, start.losses, nil
  loss = losses[#losses] and losses[#losses].loss
  local progress, seconds_to_go = meter(first, steps)
  local record = recorder(first)
  local call = options.update
  local parts = type(call) == "table" and rawget(call, "accumulate") or 1
  if options.check_numbers then
    call = function(...) return numbers.everywhere(options.update, ...) end
  end
  call = ranks:averaged(call)
  local unit = type(data) == "table" and rawget(data, "context") and "tokens" or "samples"
  local speed = measuring(options, unit)
  for step = first + 1, steps do
    local lr = options.schedule and options.schedule(step)
    if lr then options.optimizer:set_lr(lr) end
    speed:begin()
    local total, batch = sum_of_losses(call, ranks, data, parts)
    local announced, where, writing
    loss, announced, where, writing = ranks:loss(total, parts, save)
    if loss ~= loss then not_a_number(ranks, step, where) end
    local items = parts * (unit == "tokens" and batch:numel() or batch:size(1))
    speed:step(items)
    if step == steps then speed:sum_up() end
    if first_rank then
      progress(step, loss, items * ranks.world, unit, not options.check_numbers and speed.report or nil)
      record(step, step == steps, { loss = loss, lr = lr, items = items * ranks.world, unit = unit })
    end
    if log_every > 0 and (step % log_every == 0 or step == 1 or step == steps) then
      note(losses, step, loss)
      if first_rank then print(("step %5d  loss %.6f"):format(step, loss)) end
    end
    if save then
      save:poll(writing)
      if step % save.every == 0 or step == steps then save:save(step, losses) end
    end
    if options.evaluate and step % (options.evaluate_every or math.huge) == 0 then
      ranks:same_buffers()
      aside(save, options.evaluate, step)
    end
    if save and step < steps then
      if ranks.world > 1 then
        save:announced(step, losses, announced)
      else
        local left, leave = rille.preempting()
        save:preempted(step, losses, left, leave, seconds_to_go(step))
      end
    end
  end
  if save then
    save:settle_shares()
    save:settle_store()
  end
  ranks:finish()
  local rate = speed.report and speed.report.rate * ranks.world or nil
  return { loss = loss, steps = steps, losses = losses, rate = rate, rate_unit = unit .. "/s",
    checkpoint = save and save.last and save.last.directory or nil }
end

---@class rille.train.Options
---@field update fun(...: Tensor): Tensor one step: it takes the values of data:next() and returns the loss, usually
---made by `rille.compile`; if made with `accumulate = n`, it is called for n batches in each step
---@field data table yields batches by `next()`
---@field steps integer how many
---@field checkpoint? rille.train.CheckpointOptions none by default
---@field evaluate? fun(step: integer) called every `evaluate_every` steps, with random numbers of its own, after the
---step's checkpoint has been written, so that an error in it costs no step
---@field evaluate_every? integer never by default
---@field log_every? integer 10 by default; 0 is silent
---@field schedule? fun(step: integer): number the rate of `optimizer`
---@field optimizer? Optimizer whose rate the schedule sets
---@field workload? string the name under which its speed is stored, by default that of the script: see `rille.measure`
---@field model? Module whose size is stored with it; by default the first in `checkpoint.state`
---@field communicator? Communicator trains together with its other ranks: see below
---@field share_data? boolean whether all ranks have the same `data` and each takes its share: true
---@field check_numbers? boolean looks for the operation that produces the first NaN, as `dev:check_numbers` does,
---on every device in use: slow

---@class rille.train.CheckpointOptions
---@field state table models, optimizers and data sets
---@field every? integer steps between checkpoints, 50 by default
---@field keep? integer how many of the newest are kept
---@field keep_every? integer checkpoints at multiples of this step are kept forever
---@field directory? string "checkpoints" by default
---@field store? string an address such as "s3://bucket/run/": checkpoints are also sent there, below the training's
---name (`workload`, or "train"), and a training without newer ones in its directory goes on from there

---Trains: for each step takes a batch of `data`, calls `update` with it and reads the loss. `rille.train(options)` is
---the same.
---
---With `checkpoint`, a call that finds a checkpoint in the directory continues from it. Each published checkpoint is
---also sent to the caller (`box:call`). When the machine will be preempted (`rille.preempting`), a checkpoint is
---written at once, and if the lease continues on another machine, the call moves there.
---
---On a rented machine it measures itself: the median of its steps' tokens (samples, if the data has no `context`) per
---second is stored under the name of the `workload`, and `rille.offers` can rank by that name. Checkpoints and
---evaluations are not included.
---
---With `communicator`, ranks train one model, each on batches of its own: a step's batch is that of all ranks together.
---Every rank calls `rille.train` with the same options. They start with the state of rank 0. Gradients are averaged at
---the end of each `backward` (with `accumulate`, of the last one), and the loss is averaged too. Rank 0 reads
---checkpoints, logs, and distributes the state. Each rank writes its share of a checkpoint, if all see one
---`directory`, or if the calls of all have an address in a store as `checkpoint`; otherwise rank 0 writes it. `update`
---is the same as for one process: it makes no calls of the communicator.
---@param options rille.train.Options what to train, and how long
---@return { loss: number, steps: integer, losses: { step: integer, loss: number }[], rate: number?, rate_unit: string,
---checkpoint: string? } result rate: the median of its steps after the first five, of all ranks; nil under 25 steps
---@mark ephemeral
---@async
---@error io a checkpoint could not be written (a full disk); the previous one stays valid
---@error state the loss became NaN or infinite; the message names the ranks
---@error network another rank is gone; the message has its number. An error at one rank ends all
---@error denied without grants to read and write the directory of its checkpoints; with `store`, without `network`
---for its host and `providers` for its cloud
---@error state with `store`: another training writes to that address, and began later
---@error integrity with `store`: every checkpoint there is damaged
---@example
---rille.train { update = update, data = data, steps = 300, checkpoint = { every = 50, state = { model, opt, data } } }
function train.run(options)
  check(options)
  local ranks = ranks_of.new(options)
  return ranks:together(run, options, ranks)
end

-- Returns the mean loss of one batch, in nats.
local function loss_of(model, device, dtype, x, y)
  if x.device ~= device.name then x, y = x:to(device), y:to(device) end
  if dtype == nil then return model(x):cross_entropy(y) end
  local logits = rille.autocast(dtype, model, x)
  return ((dtype == "bf16" or dtype == "f16") and logits:to("f32") or logits):cross_entropy(y)
end

local function evaluating(model)
  if model._evaluating then return model:_evaluating() end
  local training = model.training  -- the model is a user's object, not a rille.nn module
  model:eval()
  return function() if training then model:train() end end
end

---The mean loss of a model over the validation part of a data set, in nats per byte or token. Only one batch is in
---memory at a time.
---@param model Module called with x
---@param data Bytes whose validation part it is
---@param options? { batches: integer, dtype: string, communicator: Communicator } batches: at most so many, all by
---default; dtype: the type of `rille.autocast` for the model, as in the training, none by default; communicator: its
---ranks, which all make the call, share the batches
---@return number loss
---@mark ephemeral
---@async
---@example
---local loss = rille.train.validation(model, data, { batches = 20, dtype = "bf16" })
function train.validation(model, data, options)
  native.check_options(options, "rille.train.validation", { "batches", "dtype", "communicator" })
  local batches = math.min(options and options.batches or math.huge, data:validation_batches())
  local device, back = tools.device_of(model), evaluating(model)
  local comm, dtype = options and options.communicator, options and options.dtype
  local ok, result = pcall(rille.no_grad, function()
    local total, count = 0, 0
    for i = comm and comm.rank + 1 or 1, batches, comm and comm.world or 1 do
      local loss = loss_of(model, device, dtype, data:validation(i))
      collectgarbage()   -- no operation has run yet: free unreferenced tensors, so that the run can reuse their memory
      total, count = total + loss:item(), count + 1
      rille.progress { what = "validate", done = i, total = batches, unit = "batches" }
    end
    if comm then total, count = ranks_of.sum(comm, total, count) end
    return total / count
  end)
  back()
  if not ok then error(result, 0) end
  return result
end

return setmetatable(train, { __call = function(_, options) return train.run(options) end })
