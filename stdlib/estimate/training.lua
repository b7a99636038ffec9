-- Internal: FLOP and memory of a training, and how machines of one offer would run it.
local models = require "rille.estimate.models"
local money = require "rille.estimate.money"
local read = require "rille.estimate.read"
local speed = require "rille.estimate.speed"

local training = {}

local weight_bytes = { fp32 = 4, tf32 = 4, fp16 = 2, bf16 = 2, fp8 = 2 }
-- Few of muon's parameters are not matrices, so the two moments that adamw keeps for those are ignored.
local moments_bytes = { adamw = 8, adam = 8, lamb = 8, sgd = 4, lion = 4, muon = 4 }
training.precisions, training.optimizers = weight_bytes, moments_bytes

-- The default batch size: as in GPT-3's paper and Llama 2.
local function usual_batch(model, context)
  if model.kind == "image" then return 1024 end
  local tokens = model.params < 1e9 and 2 ^ 19 or model.params < 1e10 and 2 ^ 21 or 2 ^ 22
  return math.max(1, math.floor(tokens / context))
end

-- Returns how much to train: tokens or images in total, and per step.
local function amount(o, model)
  local unit = model.kind == "image" and "images" or "tokens"
  local context = model.kind == "image" and 1 or model.context
  local batch = read.whole("batch", o.batch) or usual_batch(model, context)
  local epochs = read.count("epochs", o.epochs)
  local steps, samples = read.count("steps", o.steps), read.count("samples", o.samples)
  local each = unit == "tokens" and read.count("tokens", o.tokens)
  if unit == "images" and o.tokens then
    read.invalid(("tokens are given, but %s learns from images"):format(model.name),
      "epochs = 90, or steps = and batch =")
  end
  if not each and samples then each = samples * context end
  if not each and unit == "images" then each = model.samples end
  local total
  if steps then total = steps * batch * context
  elseif each and (epochs or unit == "tokens") then total = each * (epochs or 1)
  elseif epochs then
    read.invalid(("epochs = %g of how much? samples%s is missing"):format(epochs,
      unit == "tokens" and " or tokens" or ""), unit == "tokens" and "tokens = \"10B\" is one epoch of it"
      or "samples = 1.2e6, the images of the data set")
  else
    read.invalid("how much work? " .. (unit == "tokens" and "tokens, " or "") .. "epochs, steps or " ..
      "requests_per_second is missing", unit == "tokens" and
      ("tokens = %.2g is the usual 20 for each parameter"):format(20 * model.params) or "epochs = 90")
  end
  local data_gb = unit == "images" and (model.data_gb or (each or total) * 1e-4) or (each or total) * 4e-9
  return { unit = unit, total = total, context = context, batch = batch, data_gb = data_gb }
end

-- The bytes that one copy of the model needs in training, on a GPU that works on `together` images or sequences at a
-- time.
local function memory(model, o, precision, together, assumed)
  local half = weight_bytes[precision] == 2
  local out = { weights_bytes = model.params * weight_bytes[precision], gradients_bytes = model.params * 4,
    optimizer_bytes = model.params * (moments_bytes[o.optimizer] + (half and 4 or 0)), together = together }
  local scale = half and 1 or 2
  if model.kind == "image" then
    out.activations_bytes = together * model.forward_flops * assumed.activation_bytes_per_flop * scale
    out.recomputed_bytes = out.activations_bytes
  else  -- in fp16, 34 bytes per token, layer and unit of width (Korthikanti et al. 2022), if attention keeps no scores
    local tokens = together * model.context
    local logits = tokens * model.vocab * 6 * (model.kind == "encoder" and 0.15 or 1)
    out.activations_bytes = tokens * model.layers * model.width * 34 * scale + logits
    out.recomputed_bytes = tokens * (model.layers * 2 + 34) * model.width * scale + logits
  end
  out.state_bytes = out.weights_bytes + out.gradients_bytes + out.optimizer_bytes
  local sum = out.state_bytes + out.activations_bytes
  out.headroom_bytes = sum * assumed.headroom
  out.total_bytes = sum + out.headroom_bytes
  return out
end

-- Returns the work of the training, as far as it does not depend on the machines.
function training.work(o, model, assumed)
  o.optimizer = read.word("optimizer", o.optimizer, moments_bytes, model.kind == "image" and "sgd" or "adamw")
  local precision = read.word("precision", o.precision, weight_bytes, "bf16")
  local work = amount(o, model)
  local together = read.whole("micro_batch", o.micro_batch)
    or (model.kind == "image" and 32 or math.max(1, math.floor(8192 / work.context)))
  together = math.min(together, work.batch)
  work.mode, work.precision, work.optimizer = "training", precision, o.optimizer
  work.micro_batch = o.micro_batch and together
  work.flops_per_unit = 3 * models.forward_flops(model, work.context)
  work.flops = work.flops_per_unit * work.total
  work.memory = memory(model, o, precision, together, assumed)
  work.least_memory = memory(model, o, precision, 1, assumed)
  work.deadline_s, work.gpus = read.seconds("deadline", o.deadline), read.whole("gpus", o.gpus)
  work.checkpoint_bytes = model.params * (4 + moments_bytes[o.optimizer])
  return work
end

-- Returns the smallest number of GPUs that can hold one copy of the model: 1, or the number of GPUs over which its
-- state is sharded. In a machine with NVLink a sample's activations can be split too (tensor parallelism). nil: the
-- activations of one sample are too large.
local function least_gpus(work, facts, each, assumed)
  local room = facts.memory_bytes / (1 + assumed.headroom)
  local split = facts.nvlink_bytes_per_s > 0 and math.min(each, 8) or 1
  for _, try in ipairs { { work.memory, "activations_bytes", 1 }, { work.least_memory, "activations_bytes", 1 },
    { work.least_memory, "activations_bytes", split }, { work.least_memory, "recomputed_bytes", 1 },
    { work.least_memory, "recomputed_bytes", split } } do
    local need, state = try[1][try[2]] / try[3], try[1].state_bytes
    local fits = { together = try[1].together, recompute = try[2] == "recomputed_bytes", split = try[3] }
    if need + state <= room and try[3] == 1 then
      fits.gpus = 1
      return fits
    end
    if need < room / 2 then
      fits.gpus, fits.sharded = math.max(math.ceil(state / (room - need)), try[3]), true
      return fits
    end
  end
end

-- How many GPUs have work: a step of 4 sequences keeps 4 GPUs busy, or 4 groups of GPUs that split a sample.
local function busy_of(work, gpus, fits) return math.min(gpus, work.batch * fits.split) end

-- The minimum seconds of a step: the launches of its kernels, once for each micro-batch that the user requested.
local function floor_of(work, busy, fits, assumed)
  local passes = work.micro_batch and math.ceil(work.batch / (busy / fits.split * work.micro_batch)) or 1
  return math.max(1, passes) * assumed.step_floor
end

local function hours_on(work, model, facts, rate, part, machines, each, fits, assumed)
  local busy = busy_of(work, machines * each, fits)
  local alone = work.flops * (fits.recompute and 4 / 3 or 1) / (busy * rate * part)
  local steps = work.total / (work.batch * work.context)
  local least = floor_of(work, busy, fits, assumed)
  local step = math.max(alone / steps, least)
  local efficiency, bytes = speed.efficiency(model, facts, machines, each, fits.sharded, step, assumed)
  return steps * step / efficiency / 3600, efficiency, { step_seconds = step / efficiency, bytes_per_step = bytes },
    step == least
end

-- Why no number of machines with `each` GPUs has exactly `gpus` GPUs together; nil if one does.
local function no_such_number(gpus, each)
  if not gpus or gpus % each == 0 then return nil end
  local less = math.floor(gpus / each) * each
  return ("has %d GPUs, and gpus = %d is no multiple: %s%d would do"):format(each, gpus,
    less > 0 and less .. " or " or "", less + each)
end

-- Returns the smallest possible number of machines; or nil, the reason in words, and the obstacle's name.
local function least_machines(work, fits, each)
  if not work.gpus then return math.ceil(fits.gpus / each) end
  local why = no_such_number(work.gpus, each)
  if why then return nil, why, "gpus" end
  if work.gpus < fits.gpus then return nil, ("needs %d GPUs for the memory"):format(fits.gpus), "gpus" end
  return work.gpus / each
end

-- Returns the plan for machines with `each` GPUs of this kind; or nil, the reason in words, and the obstacle's name.
-- only_spot: the offer has only a spot price, so the deadline must allow for interruptions.
function training.plan(work, model, facts, each, assumed, only_spot)
  local rate, precision = speed.rate(facts, work.precision)
  local fits = least_gpus(work, facts, each, assumed)
  if not fits then return nil, "the activations of one sample do not fit into its memory", "memory" end
  local machines, why, obstacle = least_machines(work, fits, each)
  if not machines then return nil, why, obstacle end
  local part = speed.utilization(model, facts, precision, rate, "training", assumed)
  local hours, efficiency, step, least
  local function late()
    hours, efficiency, step, least = hours_on(work, model, facts, rate, part, machines, each, fits, assumed)
    if not work.deadline_s then return false end
    if hours * 3600 > work.deadline_s then return true end
    local spot = only_spot and money.on_spot({ hours = hours, machines = machines }, work, assumed)
    return only_spot and (not spot or spot.late)
  end
  local is_late = late()
  while is_late and not work.gpus and machines < assumed.machines_max do
    machines = machines + 1
    is_late = late()
  end
  if machines > assumed.machines_max then return nil, ("needs %d machines"):format(machines), "machines" end
  if is_late then
    return nil, only_spot and hours * 3600 <= work.deadline_s and "is not done by the deadline on spot"
      or "is not done by the deadline", "deadline"
  end
  local gpus = machines * each
  local idle = gpus - busy_of(work, gpus, fits)
  return { machines = machines, gpus = gpus, hours = hours, gpu_hours = hours * gpus, precision = precision,
    utilization = part, efficiency = efficiency, micro_batch = fits.together, recompute = fits.recompute,
    sharded = fits.sharded or false, split = fits.split, units_per_s = work.total / (hours * 3600),
    step_s = step.step_seconds, step_is_least = least, gpus_idle = idle > 0 and idle or nil,
    network = machines > 1 and step or nil }
end

return training
