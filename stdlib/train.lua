-- rille.train: the loop around an update function. It takes batches, logs, checkpoints, evaluates, and after a crash goes on
-- from the newest complete checkpoint in the work directory, with the losses that an undisturbed run would have had.
local native = require "rille.native"
local rille = require "rille"
local checkpoint = require "rille.checkpoint"

local train = {}

local known = { "update", "data", "steps", "checkpoint", "evaluate", "evaluate_every", "log_every", "schedule", "optimizer" }

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local function check(options)
  native.check_options(options, "rille.train", known)
  if type(options) ~= "table" then invalid("rille.train: expected a table of options", "rille.train { update = update, data = data, steps = 300 }") end
  if type(options.update) ~= "function" then invalid("rille.train: update is missing: a function of a batch that gives the loss") end
  if options.data == nil then invalid("rille.train: data is missing", "data = rille.data.bytes(\"corpus\")") end
  if type(options.steps) ~= "number" or options.steps < 1 then invalid("rille.train: steps = " .. tostring(options.steps) .. "; a number from 1 on is needed") end
  if options.schedule and not options.optimizer then invalid("rille.train: a schedule needs the optimizer whose rate it sets", "optimizer = opt") end
  local save = options.checkpoint
  native.check_options(save, "rille.train's checkpoint", { "every", "state", "keep", "keep_every", "directory", "dir" })
  if save and type(save.state) ~= "table" then invalid("rille.train: checkpoint.state is missing", "state = { model, opt, data }") end
end

-- Writes one checkpoint at a time, beside the training.
local Saver = {}
Saver.__index = Saver

local function saver(options)
  return setmetatable({ options = options, directory = options.directory or options.dir or "checkpoints", every = options.every or 50 }, Saver)
end

function Saver:published(done)
  self.write, self.last = nil, done
  native.emit { event = "checkpoint", step = done.step, directory = done.directory, size_bytes = done.size_bytes }
end

function Saver:poll()
  local done = self.write and checkpoint.done(self.write)
  if done then self:published(done) end
end

function Saver:settle()
  if self.write then self:published(checkpoint.wait(self.write)) end
end

function Saver:save(step, losses)
  self:settle()
  self.write = checkpoint.begin(self.options.state, { directory = self.directory, step = step, keep = self.options.keep,
    keep_every = self.options.keep_every, metadata = { losses = losses } })
end

-- Tokens per second over the last steps, and the time left, for the progress line.
local function meter(first, steps)
  local began, told = native.clock(), 0
  return function(step, loss, tokens)
    local now = native.clock()
    if now - told < 0.2 and step < steps then return end
    told = now
    local rate = (step - first) / math.max(1e-9, now - began)
    rille.progress { what = "train", done = step, total = steps, unit = "steps", loss = loss, rate = rate * tokens, rate_unit = "tokens",
      seconds_left = (steps - step) / math.max(rate, 1e-9) }
  end
end

-- Random numbers that an evaluation draws must not change the training's.
local function aside(fn, ...)
  local device = rille.device()
  local before = device:random_state()
  local ok, result = pcall(fn, ...)
  device:set_random_state(before)
  if not ok then error(result, 0) end
  return result
end

---Trains: for each step takes a batch of `data`, calls `update(x, y)` and reads the loss.
---
---options: `update` (usually made by rille.compile), `data` (with next()), `steps`; `checkpoint = { every = 50, state = { model, opt, data },
---keep = 3, keep_every = 0, directory = "checkpoints" }`; `evaluate` = function(step) and `evaluate_every`; `log_every` (10; 0: silent);
---`schedule` = function(step) giving the rate of `optimizer`.
---
---With `checkpoint`, a call that finds a checkpoint in the directory goes on from it. Each published checkpoint also goes to who called
---(box:call). A failed write (a full disk) raises `io`; the checkpoint before it stays good.
---@param options table
---@return { loss: number, steps: integer, losses: { step: integer, loss: number }[], checkpoint: string? }
---@async
local function run(options)
  check(options)
  local steps, log_every, data = options.steps, options.log_every or 10, options.data
  local save = options.checkpoint and saver(options.checkpoint)
  local first, losses, loss = 0, {}, nil
  if save and checkpoint.exists(save.directory) then
    local found = checkpoint.load(save.options.state, save.directory)
    first, losses = found.step, found.metadata.losses or {}
    loss = losses[#losses] and losses[#losses].loss
    save.last = found
    rille.log("training goes on from a checkpoint", { step = first, directory = found.directory })
  end
  local progress = meter(first, steps)
  for step = first + 1, steps do
    if options.schedule then options.optimizer:set_lr(options.schedule(step)) end
    local x, y = data:next()
    local result = options.update(x, y)
    if native.kind(result) == nil then invalid("rille.train: update gave " .. tostring(result) .. " instead of the loss, a tensor") end
    loss = result:item()
    if loss ~= loss then
      rille.error { kind = "state", message = "the loss is not a number any more at step " .. step,
        hint = "lower the learning rate, or clip gradients: rille.optim.clip_grad_norm" }
    end
    progress(step, loss, x:numel())
    if log_every > 0 and (step % log_every == 0 or step == 1 or step == steps) then
      losses[#losses + 1] = { step = step, loss = loss }
      print(("step %5d  loss %.6f"):format(step, loss))
    end
    if options.evaluate and step % (options.evaluate_every or math.huge) == 0 then aside(options.evaluate, step) end
    if save then
      save:poll()
      if step % save.every == 0 or step == steps then save:save(step, losses) end
    end
  end
  if save then save:settle() end
  return { loss = loss, steps = steps, losses = losses, checkpoint = save and save.last and save.last.directory or nil }
end

---The mean loss of a model over the validation part of a byte data set, in nats per byte.
---@param model Module
---@param data Bytes
---@param options? { batches: integer } at most so many; all by default
---@return number
---@async
function train.validation(model, data, options)
  native.check_options(options, "rille.train.validation", { "batches" })
  local batches = math.min(options and options.batches or math.huge, data:validation_batches())
  local training = model.training
  model:eval()
  local ok, result = pcall(rille.no_grad, function()
    local total = 0
    for i = 1, batches do
      local x, y = data:validation(i)
      total = total + model(x):cross_entropy(y):item()
      rille.progress { what = "validate", done = i, total = batches, unit = "batches" }
    end
    return total / batches
  end)
  if training then model:train() end
  if not ok then error(result, 0) end
  return result
end

train.run = run

return setmetatable(train, { __call = function(_, options) return run(options) end })
