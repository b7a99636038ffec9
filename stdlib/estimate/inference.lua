-- Internal: memory, latency and capacity of a model that answers requests, and the number of machines needed. Queues
-- are not modelled: a replica is loaded only to the fraction assume.load.
local models = require "rille.estimate.models"
local read = require "rille.estimate.read"
local speed = require "rille.estimate.speed"
local words = require "rille.estimate.words"

local inference = {}

local weight_bytes = { fp32 = 4, tf32 = 4, fp16 = 2, bf16 = 2, fp8 = 1, int8 = 1, int4 = 0.5 }
local batch_max = 512

function inference.work(o, model, assumed)
  local precision = read.word("precision", o.precision, weight_bytes, "fp16")
  local work = { mode = "inference", precision = precision, generates = model.kind == "decoder",
    requests_per_second = read.count("requests_per_second", o.requests_per_second),
    latency_s = read.seconds("latency", o.latency), batch = read.whole("batch", o.batch) }
  work.unit = work.generates and "tokens" or model.kind == "image" and "images" or "texts"
  if work.generates then
    work.prompt = read.whole("prompt_tokens", o.prompt_tokens) or 512
    work.output = read.whole("output_tokens", o.output_tokens) or 128
    if work.prompt + work.output > model.context then
      read.invalid(("prompt_tokens %d and output_tokens %d are more than the context of %s, %d"):format(work.prompt,
        work.output, model.name, model.context), "context = sets it")
    end
    local each = precision == "fp32" and 4 or (precision == "fp8" and 1 or 2)
    work.cache_bytes = 2 * model.layers * model.kv_heads * (model.width / model.heads) * each
    work.flops = models.forward_flops(model, (work.prompt + work.output) / 2) * (work.prompt + work.output)
  else
    if o.output_tokens then
      read.invalid(("%s answers in one pass: output_tokens has no meaning"):format(model.name))
    end
    work.length = model.kind == "image" and 1 or read.whole("prompt_tokens", o.prompt_tokens) or model.context
    work.flops = models.forward_flops(model, work.length) * work.length
  end
  work.weights_bytes = model.params * weight_bytes[precision]
  work.read_bytes = model.active_params * weight_bytes[precision]
  work.period = "month"
  work.memory = inference.memory(work, model, work.batch or 1, assumed)
  return work
end

-- The memory in bytes of a replica that works on `together` requests at a time.
function inference.memory(work, model, together, assumed)
  local out = { weights_bytes = work.weights_bytes, together = together }
  if work.generates then out.cache_bytes = together * work.cache_bytes * (work.prompt + work.output)
  elseif model.kind == "image" then out.activations_bytes = together * model.forward_flops * 0.002
  else out.activations_bytes = together * work.length * model.width * 34 end
  local sum = out.weights_bytes + (out.cache_bytes or 0) + (out.activations_bytes or 0)
  out.headroom_bytes = sum * assumed.headroom
  out.total_bytes = sum + out.headroom_bytes
  return out
end

-- Returns the seconds from a request to its answer when `gpus` GPUs work on `together` requests at a time, and the
-- answers per second.
local function times(work, model, facts, reached, gpus, together, assumed)
  local split = gpus > 1 and assumed.sharded_efficiency or 1
  local flops_per_s = gpus * reached * split
  local bytes_per_s = gpus * facts.bytes_per_s * assumed.bandwidth_efficiency * split
  if not work.generates then
    local pass = math.max(assumed.latency_floor, together * work.flops / flops_per_s, work.read_bytes / bytes_per_s)
    return pass, together / pass
  end
  local prompt_s = models.forward_flops(model, work.prompt / 2) * work.prompt / flops_per_s
  local held = together * work.cache_bytes * (work.prompt + work.output / 2)
  local token_s = math.max((work.read_bytes + held) / bytes_per_s,
    together * models.forward_flops(model, work.prompt) / flops_per_s)
  -- While a replica generates one text, it processes the prompts of other requests in between.
  local all = work.output * token_s + together * prompt_s
  return all, together / all, prompt_s, token_s
end

-- Returns the best operating point of a replica with `gpus` GPUs, which gives the most answers within the latency
-- limit; whether the model fits into memory; and the shortest possible latency.
local function best_of(work, model, facts, reached, gpus, latency_s, assumed)
  local best, fits, soonest = nil, false, math.huge
  local together = work.batch or 1
  while together <= batch_max or together == work.batch do
    if inference.memory(work, model, together, assumed).total_bytes > gpus * facts.memory_bytes then break end
    local latency, per_s, prompt_s, token_s = times(work, model, facts, reached, gpus, together, assumed)
    fits, soonest = true, math.min(soonest, latency)
    if (not latency_s or latency <= latency_s) and (not best or per_s > best.per_s * 1.02) then
      best = { batch = together, latency_s = latency, per_s = per_s, first_token_s = prompt_s, token_s = token_s }
    end
    if work.batch then break end
    together = together * 2
  end
  return best, fits, soonest
end

local function machines_for(work, best, each, gpus, assumed)
  local replicas = math.ceil(work.requests_per_second / (best.per_s * assumed.load))
  return math.ceil(replicas / math.floor(each / gpus)), replicas
end

-- Says why no replica is possible: the reason in words, and the name of the obstacle.
local function no_replica(fits, soonest)
  if not fits then return "does not fit into its memory", "memory" end
  return ("answers in %s at the soonest: too slow for the latency"):format(words.duration(soonest / 3600)), "latency"
end

-- Returns the plan for machines with `each` GPUs of this kind; or nil, the reason in words, and the obstacle's name.
function inference.plan(work, model, facts, each, assumed)
  local rate, precision = speed.rate(facts, work.precision)
  local part = speed.utilization(model, facts, precision, rate, "inference", assumed)
  local gpus, best, fits_any, soonest = 1, nil, false, math.huge
  while gpus <= math.min(each, work.generates and 8 or 1) do
    local fits, first
    best, fits, first = best_of(work, model, facts, rate * part, gpus, work.latency_s, assumed)
    fits_any, soonest = fits_any or fits, math.min(soonest, first)
    if best then break end
    gpus = gpus * 2
  end
  if not best then return nil, no_replica(fits_any, soonest) end
  local machines, replicas = machines_for(work, best, each, gpus, assumed)
  -- Compute the machines without a latency limit, to tell whether the latency or the number of requests needs so
  -- many.
  local free = best_of(work, model, facts, rate * part, gpus, nil, assumed)
  local unhurried = machines_for(work, free, each, gpus, assumed)
  if machines > assumed.machines_max then
    if unhurried > assumed.machines_max then return nil, ("needs %d machines"):format(machines), "machines" end
    return nil, ("needs %d machines for the latency, and %d without it"):format(machines, unhurried), "latency"
  end
  return { machines = machines, gpus = machines * each, hours = assumed.hours_per_month,
    gpu_hours = assumed.hours_per_month * machines * each, precision = precision, utilization = part,
    replicas = replicas, gpus_per_replica = gpus, batch = best.batch, latency_s = best.latency_s,
    first_token_s = best.first_token_s, token_s = best.token_s, requests_per_s = best.per_s,
    machines_unhurried = unhurried < machines and unhurried or nil }
end

inference.precisions = weight_bytes
return inference
