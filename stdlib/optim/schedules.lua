-- Part of rille.optim: schedules. Functions from a step, counting from 1, to the learning rate of that step, for
-- rille.train's `schedule` or for opt:set_lr. Groups with a rate of their own keep its ratio to the first group's.
local native = require "rille.native"
local rille = require "rille"

local optim = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

-- Reads a schedule's options and fills in the defaults; raises if an option in `needed` is missing.
local function read(verb, given, defaults, needed)
  local known, o = {}, {}
  for name, v in pairs(defaults) do known[#known + 1], o[name] = name, v end
  for _, name in ipairs(needed) do known[#known + 1] = name end
  native.check_options(given, verb, known)
  for name, v in pairs(given or {}) do o[name] = v end
  for _, name in ipairs(needed) do
    if type(o[name]) ~= "number" then
      invalid(("%s: %s are needed"):format(verb, table.concat(needed, " and ")), verb .. " { lr = 1e-3, steps = 300 }")
    end
  end
  if o.warmup == false then o.warmup = math.floor(o.steps * 0.05) end
  if o.floor == false then o.floor = o.lr / 10 end
  if o.steps and o.warmup and o.warmup > o.steps then
    invalid(("%s: a warmup of %g steps out of %g"):format(verb, o.warmup, o.steps))
  end
  return o
end

-- A schedule that grows linearly over o.warmup steps to o.lr, then continues with after(fraction of the remaining
-- steps done).
local function warmed(o, after)
  return function(step)
    if step <= o.warmup then return o.lr * step / o.warmup end
    return after(math.min(1, (step - o.warmup) / math.max(1, o.steps - o.warmup)), step)
  end
end

local function half_cosine(from, to, done) return to + (from - to) * 0.5 * (1 + math.cos(math.pi * done)) end

---A schedule: the rate grows from 0 to `lr` over `warmup` steps and falls to `floor` along a cosine.
---@param options { lr: number, steps: integer, warmup: integer, floor: number } warmup: 5 % of the steps; floor: lr
---/ 10
---@return fun(step: integer): number
---@mark deterministic
function optim.cosine(options)
  local o = read("rille.optim.cosine", options, { warmup = false, floor = false }, { "lr", "steps" })
  return warmed(o, function(done) return half_cosine(o.lr, o.floor, done) end)
end

---A schedule: the rate grows from 0 to `lr` over `warmup` steps and falls linearly to `floor`.
---@param options { lr: number, steps: integer, warmup: integer, floor: number } warmup: 5 % of the steps; floor: 0
---@return fun(step: integer): number
---@mark deterministic
function optim.linear(options)
  local o = read("rille.optim.linear", options, { warmup = false, floor = 0 }, { "lr", "steps" })
  return warmed(o, function(done) return o.lr + (o.floor - o.lr) * done end)
end

---A schedule: the rate grows from 0 to `lr` over `warmup` steps and stays.
---@param options { lr: number, warmup: integer } warmup: 0
---@return fun(step: integer): number
---@mark deterministic
function optim.constant(options)
  local o = read("rille.optim.constant", options, { warmup = 0 }, { "lr" })
  return function(step) return step < o.warmup and o.lr * step / o.warmup or o.lr end
end

---A schedule: the rate is multiplied by `factor` after each of the steps `at`, or after every `every` steps.
---@param options { lr: number, every: integer, at: integer[], factor: number, warmup: integer } factor: 0.1; warmup: 0
---@return fun(step: integer): number
---@mark deterministic
---@example
---local rate = rille.optim.step_decay { lr = 0.1, at = { 3000, 6000 } }
function optim.step_decay(options)
  local verb = "rille.optim.step_decay"
  local o = read(verb, options, { every = false, at = false, factor = 0.1, warmup = 0 }, { "lr" })
  if not o.every == not o.at then
    invalid(verb .. ": give one of every = steps and at = { step, .. }")
  end
  return function(step)
    if step < o.warmup then return o.lr * step / o.warmup end
    local times = 0
    if o.every then
      times = math.floor((step - 1) / o.every)
    else
      for _, at in ipairs(o.at) do if step > at then times = times + 1 end end
    end
    return o.lr * o.factor ^ times
  end
end

---A schedule in one cycle (Smith and Topin 2017): along a half cosine from `lr / start` up to `lr` over the fraction
---`rise` of the steps, then down to `lr / start / last`.
---@param options { lr: number, steps: integer, rise: number, start: number, last: number } rise: 0.3; start: 25; last:
---1e4
---@return fun(step: integer): number
---@mark deterministic
function optim.one_cycle(options)
  local o = read("rille.optim.one_cycle", options, { rise = 0.3, start = 25, last = 1e4 }, { "lr", "steps" })
  local first = o.lr / o.start
  local top = o.rise * o.steps - 1
  return function(step)
    local at = math.min(step, o.steps) - 1
    if at <= top then return half_cosine(first, o.lr, at / math.max(1e-9, top)) end
    return half_cosine(o.lr, first / o.last, (at - top) / math.max(1e-9, o.steps - 1 - top))
  end
end

---A schedule of warmup, stable rate and decay (Hu et al. 2024): the rate grows over `warmup` steps, stays at `lr`, and
---falls to `floor` linearly, or as 1 - sqrt, in the last `decay` steps. A training can be extended from any checkpoint
---of the stable part.
---@param options { lr: number, steps: integer, warmup: integer, decay: integer, floor: number, shape: string } warmup:
---5 % of the steps; decay: 20 % of them; floor: 0; shape: "linear", or "sqrt"
---@return fun(step: integer): number
---@mark deterministic
function optim.wsd(options)
  local verb = "rille.optim.wsd"
  local o = read(verb, options, { warmup = false, decay = false, floor = 0, shape = "linear" }, { "lr", "steps" })
  local decay = o.decay or math.floor(o.steps * 0.2)
  if o.shape ~= "linear" and o.shape ~= "sqrt" then
    invalid(("%s: shape = %s"):format(verb, tostring(o.shape)), 'shape is "linear" or "sqrt"')
  end
  return warmed(o, function(_, step)
    local left = math.max(0, math.min(1, (o.steps - step) / math.max(1, decay)))
    if o.shape == "sqrt" then left = 1 - math.sqrt(1 - left) end
    return o.floor + (o.lr - o.floor) * left
  end)
end

return optim
