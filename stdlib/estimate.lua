-- rille.estimate: what a training, a service or some hours of GPUs need and cost, before anything is rented: FLOP,
-- memory, machines, time, and money for each way of paying.
local native = require "rille.native"
local assume = require "rille.estimate.assume"
local inference = require "rille.estimate.inference"
local models = require "rille.estimate.models"
local money = require "rille.estimate.money"
local nothing = require "rille.estimate.nothing"
local offers = require "rille.estimate.offers"
local read = require "rille.estimate.read"
local rental = require "rille.estimate.rental"
local training = require "rille.estimate.training"
local words = require "rille.estimate.words"

local options_of = {
  all = { "gpu", "offers", "rows" },
  model = { "model", "params", "active_params", "layers", "width", "heads", "kv_heads", "vocab", "context",
    "flops_per_sample", "precision", "batch", "assume" },
  training = { "tokens", "epochs", "steps", "samples", "micro_batch", "optimizer", "deadline" },
  inference = { "requests_per_second", "prompt_tokens", "output_tokens", "latency" },
  rental = { "hours" },
  gpus = { "gpus" },  -- of a training, or of a rental
}

-- Which groups of options each kind of estimate takes, its name in words, and what makes it one.
local modes = {
  training = { { "all", "model", "training", "gpus" }, "training",
    "requests_per_second = makes it an estimate of inference, hours = one of a rental" },
  inference = { { "all", "model", "inference" }, "inference", "leave requests_per_second out for a training" },
  rental = { { "all", "rental", "gpus" }, "a rental of hours", "leave hours out for a training or a service" },
}

local function check(o)
  local names = {}
  for _, part in ipairs { "all", "model", "training", "inference", "rental", "gpus" } do
    for _, name in ipairs(options_of[part]) do names[#names + 1] = name end
  end
  if type(o) ~= "table" then
    read.invalid("expected a table of options", "rille.estimate { model = \"gpt2\", tokens = \"10B\" }")
  end
  native.check_options(o, "rille.estimate", names)
  local mode = o.hours ~= nil and "rental" or o.requests_per_second ~= nil and "inference" or "training"
  local parts, called, hint = unpack(modes[mode])
  local taken = {}
  for _, part in ipairs(parts) do for _, name in ipairs(options_of[part]) do taken[name] = true end end
  for _, name in ipairs(names) do
    if o[name] ~= nil and not taken[name] then
      read.invalid(("%s has no meaning for %s"):format(name, called), hint)
    end
  end
  if mode == "training" and o.gpu ~= nil and not o.model and not o.params then
    read.invalid("gpu alone says nothing to do", "hours = 8 makes it a rental; model = or params = a training")
  end
  return mode
end

-- The offers with `gpu` in their query.
local function offers_for(o)
  if o.gpu == nil then return o.offers end
  local gpu_is = "gpu = " .. nothing.text(o.gpu)
  if type(o.gpu) ~= "string" and type(o.gpu) ~= "table" then
    read.invalid(gpu_is .. "; a name or a list of names is needed", 'as in rent: gpu = "A100:8"')
  end
  local query = { gpu = o.gpu }
  if o.offers ~= nil and type(o.offers) ~= "table" then return o.offers end  -- gather refuses it
  if o.offers and offers.is_list(o.offers) then
    read.invalid(gpu_is .. " together with a list of offers", "leave gpu out, or give a query in place of the list")
  end
  for key, value in pairs(o.offers or {}) do
    if key == "gpu" then read.invalid("gpu is given twice: " .. gpu_is .. ", and in offers", "leave one out") end
    query[key] = value
  end
  return query
end

-- Adds the offer's network speed and disk price to the assumptions, unless the user gave these.
local function with_told(assumed, group, given)
  local told = { disk_price_from = given.disk_price and "given" or "assumed" }
  if not assumed.network_gbps then told.network_gbps = group.network_gbps end
  if not given.disk_price and group.disk_price_per_gb_hour then
    told.disk_price, told.disk_price_from = group.disk_price_per_gb_hour * 730, "offer"
  end
  return setmetatable(told, { __index = assumed })
end

local function plan_for(group, work, model, assumed, given)
  assumed = with_told(assumed, group, given)
  local make = work.mode == "training" and training.plan or inference.plan
  local only_spot = group.spot_price_per_hour and not group.price_per_hour
  local plan, why, obstacle = make(work, model, group.facts, group.gpu_count, assumed, only_spot)
  if not plan then return nil, why, obstacle end
  plan.gpu, plan.gpus_each, plan.facts, plan.confirmed = group.gpu, group.gpu_count, group.facts.name,
    group.facts.confirmed
  plan.provider, plan.region = group.provider, group.region
  plan.price_per_hour, plan.spot_price_per_hour = group.price_per_hour, group.spot_price_per_hour
  plan.list_price_of = group.list_price_of
  money.add(plan, group, work, model, group.facts, assumed)
  return plan
end

-- Orders plans: cheapest first; after them plans without a price, fewest GPU hours first.
local function before(a, b)
  local x, y = a.cost.on_demand or a.cost.spot, b.cost.on_demand or b.cost.spot
  if x and y and x ~= y then return x < y end
  if (x == nil) ~= (y == nil) then return x ~= nil end
  if a.gpu_hours ~= b.gpu_hours then return a.gpu_hours < b.gpu_hours end
  if a.gpus ~= b.gpus then return a.gpus < b.gpus end
  return words.machines_of(a) < words.machines_of(b)
end

local Estimate = { __tostring = words.print, __metatable = "Estimate" }

local function result_of(work, model, rows, assumptions)
  local out = { kind = work.mode, rows = rows, plans = {}, skipped = {}, assumptions = assumptions, hours = work.hours }
  if not model then return out end
  for key, value in pairs { flops = work.flops, precision = work.precision, unit = work.unit, amount = work.total,
    optimizer = work.optimizer, batch = work.batch, requests_per_second = work.requests_per_second,
    prompt_tokens = work.prompt, output_tokens = work.output, memory = work.memory } do out[key] = value end
  out.model = { name = model.name, kind = model.kind, params = model.params, layers = model.layers,
    width = model.width, context = model.context }
  return out
end

-- Adds to the result a plan for each kind of machine that `plan_of` has one for, cheapest first, and the skipped ones.
local function add_plans(result, found, plan_of)
  for _, group in ipairs(found.groups) do
    local plan, why, obstacle = plan_of(group)
    if plan then result.plans[#result.plans + 1] = plan
    else
      table.insert(result.skipped, { gpu = group.gpu, gpu_count = group.gpu_count, provider = group.provider,
        why = why, obstacle = obstacle })
    end
  end
  for i, row in ipairs(found.skipped) do table.insert(result.skipped, row.error and i or #result.skipped + 1, row) end
  table.sort(result.plans, before)
end

---@class rille.estimate.Options
---@field gpu? string|string[] only offers of these GPUs, as `rille.rent` takes it: "H100", "A100:8", or a list
---@field hours? number|string makes it an estimate of a rental: machines for so many hours, "8h", whatever they do;
---without `gpus`, one machine
---@field model? string a known model: "gpt2", "gpt2-xl", "llama-7b", "bert-large", "resnet50", "yolov8m", ..
---@field params? number|string or any transformer with so many parameters: "7B"
---@field active_params? number|string of a mixture of experts: parameters used per token
---@field layers? integer of a transformer; by default from `params`, and so are `width`, `heads`, `kv_heads`, `vocab`
---@field width? integer numbers in each token's vector
---@field heads? integer of attention
---@field kv_heads? integer of keys and values, where they are fewer
---@field vocab? integer size of the vocabulary
---@field context? integer tokens in a sequence
---@field flops_per_sample? number|string with `params`: any network, by the FLOP of one forward pass over a sample
---@field tokens? number|string to train on: "10B"; with `epochs`, per epoch
---@field epochs? number over the data set
---@field steps? number|string or so many steps of `batch`
---@field samples? number|string images or sequences of the data set; ImageNet's and COCO's are known
---@field batch? integer images or sequences in one step of all GPUs together: by default 1024 images, or the sequences
---of 0.5M tokens, 2M from 1B parameters on, 4M from 10B on; for inference, requests at a time
---@field micro_batch? integer images or sequences that one GPU works on at a time
---@field precision? string "bf16" for training, "fp16" for inference; fp32, tf32, fp8; for inference also int8 and int4
---@field optimizer? string "adamw", "lamb" or "sgd"; by default "sgd" for images, else "adamw"
---@field deadline? string|number uses as many machines as needed to finish by then: "24h". A spot plan whose
---interruptions make it late is marked, and not recommended
---@field gpus? integer of a training or a rental: exactly so many GPUs in all; machines that do not divide it are
---skipped
---@field requests_per_second? number makes it an estimate of inference
---@field prompt_tokens? integer of a request, 512 by default; for an encoder its length
---@field output_tokens? integer of an answer, 128 by default
---@field latency? string|number the longest that an answer may take: "2s", "50ms"
---@field offers? table a query as for `rille.offers`, or a list of offers; by default all offered GPUs that Rille
---supports. A price in another currency counts if `rates` convert it to dollars. Where no live price is known, the
---providers' list prices are used, marked with their dates; of a GPU that has none either, no price is estimated
---@field rows? integer how many plans are printed, 12 by default
---@field assume? table other values for assumptions, by the names in `result.assumptions`

---@class rille.estimate.Result
---@field kind string "training", "inference" or "rental"; a rental has no `flops`, `memory`, `model`
---@field flops number of the whole training, or of one request
---@field hours? number of a rental
---@field memory table `weights_bytes`, `gradients_bytes`, `optimizer_bytes`, `activations_bytes` or `cache_bytes`,
---`headroom_bytes`, `total_bytes`, for `together` samples at a time
---@field plans rille.estimate.Plan[] the ways to do it, the cheapest first
---@field skipped table[] the machines that cannot do it: `gpu`, `gpu_count`, `provider`, `why`, and `obstacle`, one of
---"memory", "gpus", "deadline", "latency", "machines"; before them the
---providers that failed: `provider`, `why`, `error` (its kind), `hint`
---@field recommendation string in words
---@field unpriced? string why no plan has a live price: no offer matches the query, or none has a price in dollars.
---The plans then have list prices, or none
---@field list_price_of? string the dates of the list prices in the plans: "2026-10-10", or "2026-01-21 to 2026-10-10"
---@field assumptions table[] the values assumed: `name`, `value`, `given`, `why`; prints as a table

---@class rille.estimate.Plan
---@field gpu string as offered; `facts` is the name of its row in `rille.gpus()`
---@field machines integer and `gpus` in all
---@field hours number of work without interruptions; of a service, per month
---@field cost table dollars: `on_demand`, `spot`, `reserved_1y`, `reserved_3y`, `mix`, `buy`; nil if unknown
---@field list_price_of? string the dates of its prices, if these are list prices: no live price is known, and today's
---may differ. nil: they are live, or there are none
---@field extras table dollars in all of these except `buy`: `storage`, `disks`, `addresses`, `snapshots`,
---`transfer`, `total`
---@field disk table of each machine: `gb`, `price_per_gb_month`, `from` "offer", "given" or "assumed"
---@field spot? table `hours`, expected `interruptions`, `lost_hours`; nil: interruptions come too often for progress.
---If it ends after the deadline, `late` is set, and `cost` is here rather than in the plan's
---@field reserved table `["1y"]`, `["3y"]`: `price_per_hour`, `from` "offer", "list" or "assumed"; `commitment`,
---`pays_above`
---@field buy? table `purchase`, `per_hour`, `cost`
---@field utilization number the part of the dense rate that is assumed
---@field sharded? boolean the state of one copy is spread over GPUs; `split`: over how many each sample is
---@field step_s? number of a training: one step; `step_is_least`: it is `step_floor`, the time of the launches
---@field gpus_idle? integer those of `gpus` for which a step's `batch` has no work; they are paid for nevertheless
---@field recompute? boolean activations are computed again in the backward pass
---@field latency_s? number of a service: time until an answer is complete; `batch` at a time, by `replicas`
---@field requests_per_s? number the most that one replica can answer
---@field machines_unhurried? integer how many would suffice without the latency limit, if fewer

---Estimates what a training or a service needs and costs: FLOP, memory, how many of which GPU, time, and money for each
---offer: on demand, on spot with the expected interruptions, reserved for one and three years, a mix of these, and
---bought; with storage, disks, addresses, snapshots and transfer. It prints as a table with a recommendation in words.
---Offers come from the providers, once on demand and once on spot, unless a list is given. With `hours`, it compares
---what the machines cost for that time, and nothing else. Where no live price is known, plans have the providers' list
---prices and say so, in `list_price_of`: no budget counts these.
---@param options rille.estimate.Options what is trained, or served
---@return rille.estimate.Result result prints as a table with a recommendation
---@mark durable
---@async
---@error invalid an unknown model or option, an impossible number, nothing to do, or a GPU that is neither offered nor
---known
---@error denied without a grant of a provider, if it asks for offers
---@example
---print(rille.estimate { model = "gpt2", tokens = "10B", deadline = "12h" })
---print(rille.estimate { params = "7B", requests_per_second = 5, latency = "4s", gpu = "A100" })
---print(rille.estimate { gpu = "H100:8", hours = 8 })
local function estimate(options)
  local mode = check(options)
  local o = {}
  for key, value in pairs(options) do o[key] = value end
  local rows = read.whole("rows", o.rows) or 12
  local work, model, assumed, assumptions
  if mode == "rental" then
    work, assumptions = rental.work(o), assume.none()
  else
    assumed, assumptions = assume.read(o.assume, mode)
    model = models.find(o)
    work = (mode == "training" and training or inference).work(o, model, assumed)
  end
  local found = offers.gather(offers_for(o))
  local result = result_of(work, model, rows, assumptions)
  result.unpriced, result.list_price_of = found.unpriced, found.list_price_of
  add_plans(result, found, function(group)
    if mode == "rental" then return rental.plan(work, group) end
    return plan_for(group, work, model, assumed, o.assume or {})
  end)
  if model and model.guessed then
    assume.note(assumptions, "shape", ("%d layers of %d"):format(model.layers, model.width),
      "a transformer whose width is 128 times its layers")
  end
  for _, note in ipairs(found.notes) do assume.note(assumptions, note[1], note[2], note[3]) end
  result.recommendation = words.recommend(result)
  return setmetatable(result, Estimate)
end

return estimate
