-- run: durable
-- rille.gpus and rille.estimate: against published runs, by their own arithmetic, and what they refuse.
local rille = require "rille"
local tap = require "tap"

-- Hours of the plan for so many GPUs of one kind; no price, no provider.
local function hours(gpu, each, options)
  options.offers = { { gpu = gpu, gpu_count = each } }
  local result = rille.estimate(options)
  tap.equal(#result.plans, 1)
  return result.plans[1].hours
end

local function near(what, got, published)
  local ratio = got / published
  tap.ok(ratio > 0.6 and ratio < 1.6, ("%s: %.2f h estimated, %.2f h published"):format(what, got, published))
end

-- llm.c: scripts/run_gpt2_124M.sh (18865 steps of 524288 tokens, about 300 ms each on 8 x A100 80GB SXM), and the same
-- for 774M and 1558M; discussion 481: about 14 h on one A100 40GB PCIe.
tap.test("GPT-2 as llm.c trained it", function()
  local small = { model = "gpt2", steps = 18865, batch = 512 }
  near("124M on 8 x A100", hours("A100-SXM4-80GB", 8, small), 94.3 / 60)
  near("124M on one A100", hours("A100-PCIE-40GB", 1, small), 14)
  near("774M on 8 x A100", hours("A100 80GB", 8, { model = "gpt2-large", steps = 286102, batch = 512 }), 135)
  near("1558M on 8 x A100", hours("A100 80GB", 8, { model = "gpt2-xl", steps = 1e5, batch = 1024 }), 194.4)
end)

-- NVIDIA DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5/README.md: images per second in training.
tap.test("ResNet-50, 90 epochs, as NVIDIA trained it", function()
  local images = 90 * 1281167
  for _, run in ipairs { { "A100 80GB", 1, "bf16", 2470 }, { "A100 80GB", 8, "bf16", 16621 },
    { "A100 80GB", 8, "tf32", 7248 }, { "V100 16GB", 1, "fp16", 1200 }, { "V100 16GB", 8, "fp16", 8322 },
    { "V100 16GB", 8, "fp32", 2855 } } do
    local got = hours(run[1], run[2], { model = "resnet50", epochs = 90, batch = 2048, precision = run[3] })
    near(("%d x %s in %s"):format(run[2], run[1], run[3]), got, images / run[4] / 3600)
  end
end)

-- NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md: 7038 steps of 65536 sequences of 128 tokens,
-- then 1563 of 32768 of 512.
tap.test("BERT-large as NVIDIA trained it", function()
  local function both(gpu, gpus, precision)
    local function phase(context, steps, batch)
      return hours(gpu, 8, { model = "bert-large", context = context, steps = steps, batch = batch, gpus = gpus,
        precision = precision, optimizer = "lamb" })
    end
    return phase(128, 7038, 65536) + phase(512, 1563, 32768)
  end
  local function published(short, long) return (7038 * 65536 / short + 1563 * 32768 / long) / 3600 end
  near("8 x V100 in fp16", both("V100 32GB", 8, "fp16"), published(1746, 586))
  near("8 x V100 in fp32", both("V100 32GB", 8, "fp32"), published(387, 149.6))
  near("8 x A100 in tf32", both("A100 80GB", 8, "tf32"), published(2505, 860))
  near("256 x A100 in fp16", both("A100 80GB", 256, "fp16"), 1.2)
end)

-- Meta's model card of Llama 2: 184320 and 1720320 GPU hours on A100 80GB for 2T tokens.
tap.test("Llama 2 as Meta trained it", function()
  local function on_1024(model)
    return hours("A100 80GB", 8, { model = model, tokens = "2T", gpus = 1024, batch = 1024 })
  end
  near("7B", on_1024("llama-7b"), 184320 / 1024)
  near("70B", on_1024("llama-70b"), 1720320 / 1024)
end)

-- The same page of NVIDIA on ResNet-50: images per second of inference at batch 128, latency at 32 on T4.
tap.test("ResNet-50 answers as NVIDIA measured it", function()
  local function plan(gpu, precision, batch)
    return rille.estimate { model = "resnet50", requests_per_second = 1, batch = batch, precision = precision,
      offers = { { gpu = gpu } } }.plans[1]
  end
  near("V100, fp16", 1 / plan("V100 16GB", "fp16", 128).requests_per_s, 1 / 3249)
  near("V100, fp32", 1 / plan("V100 16GB", "fp32", 128).requests_per_s, 1 / 1229)
  near("T4, fp16", 1 / plan("T4", "fp16", 128).requests_per_s, 1 / 1190)
  near("T4, fp32", 1 / plan("T4", "fp32", 128).requests_per_s, 1 / 426)
  near("T4, 32 at a time", plan("T4", "fp16", 32).latency_s, 29.54e-3)
end)

-- Nothing was fitted to these, and nothing is to be: they say how far off the estimate is where it was not tried.
-- docs/manual/estimate.md has the ratios.
local function held_out(what, got, published, low, high)
  local ratio = got / published
  tap.ok(ratio > low and ratio < high, ("%s: %.3g estimated, %.3g published, %.2f"):format(what, got, published, ratio))
end

tap.test("trainings that nothing was fitted to", function()
  -- TinyLlama's README: 22B tokens in 32 hours with 8 A100 of 40 GB; 24k tokens per second on each.
  held_out("TinyLlama", hours("A100 40GB", 8, { model = "tinyllama", tokens = "22B", batch = 1024 }), 32, 0.9, 1.5)
  -- BLOOM (Le Scao et al. 2022): 366B tokens, 384 A100 80GB, 1,082,990 GPU hours, with what was lost to failures.
  held_out("BLOOM 176B", 384 * hours("A100 80GB", 8, { params = 176.247e9, layers = 70, width = 14336, heads = 112,
    vocab = 250680, context = 2048, tokens = "366B", batch = 2048, gpus = 384 }), 1082990, 0.6, 1.2)
  -- Meta's model card of Llama 3: 1.3M and 6.4M GPU hours on H100 80GB for more than 15T tokens. On how many is not
  -- said: 1024 are taken.
  local function hours_on_h100(model)
    return 1024 * hours("H100 80GB", 8, { model = model, tokens = "15T", gpus = 1024, batch = 2048 })
  end
  held_out("Llama 3 8B", hours_on_h100("llama-3-8b"), 1.3e6, 0.4, 1)
  held_out("Llama 3 70B", hours_on_h100("llama-3-70b"), 6.4e6, 0.7, 1.4)
end)

-- gpt-fast's README: tokens per second of one text on A100 80GB (held to 330 W), after a prompt of 5 tokens.
tap.test("text that is generated as nothing was fitted to", function()
  local function each_s(model, precision, gpus)
    local plan = rille.estimate { model = model, precision = precision, batch = 1, requests_per_second = 0.01,
      prompt_tokens = 5, output_tokens = 200, offers = { { gpu = "A100 80GB", gpu_count = gpus } } }.plans[1]
    tap.equal(plan.gpus_per_replica, gpus)
    return plan.token_s
  end
  held_out("Llama 2 7B in bf16", each_s("llama-7b", "bf16", 1), 1 / 104.9, 0.8, 1.4)
  held_out("Llama 2 7B in int8", each_s("llama-7b", "int8", 1), 1 / 155.58, 0.6, 1.2)
  held_out("Llama 2 7B in int4", each_s("llama-7b", "int4", 1), 1 / 196.8, 0.4, 1)
  held_out("Llama 2 70B on four", each_s("llama-70b", "bf16", 4), 1 / 38.01, 0.8, 1.4)
end)

tap.test("FLOP and memory by hand", function()
  local gpt = rille.estimate { model = "gpt2", tokens = 1e9, offers = { { gpu = "A100" } } }
  tap.equal(gpt.flops, 1e9 * (6 * 124.4e6 + 12 * 12 * 768 * 1024))
  local m = gpt.memory
  tap.equal({ m.weights_bytes, m.gradients_bytes, m.optimizer_bytes }, { 2 * 124.4e6, 4 * 124.4e6, 12 * 124.4e6 })
  tap.ok(math.abs(m.headroom_bytes - 0.2 * (m.state_bytes + m.activations_bytes)) < 1)
  local epochs = rille.estimate { model = "gpt2", tokens = "1B", epochs = 3, offers = { { gpu = "A100" } } }
  tap.equal(epochs.flops, 3 * gpt.flops)
  local resnet = rille.estimate { model = "resnet50", epochs = 90, offers = { { gpu = "A100" } } }
  tap.equal(resnet.flops, 90 * 1281167 * 3 * 8.2e9)
end)

tap.test("a model too large for one GPU is sharded, and one too large for all is reported", function()
  local big = rille.estimate { params = "7B", tokens = "1B", offers = { { gpu = "A100 80GB" } } }
  tap.equal({ #big.plans, big.plans[1].sharded, big.plans[1].machines > 1 }, { 1, true, true })
  tap.ok(big.plans[1].network.bytes_per_step > 0)
  tap.ok(big.recommendation:find("RDMA", 1, true), big.recommendation)
  local none = rille.estimate { model = "llama-70b", tokens = "1B", offers = { { gpu = "T4" } } }
  tap.equal({ #none.plans, none.skipped[1].why }, { 0, "the activations of one sample do not fit into its memory" })
  tap.ok(tostring(none):find("no machine fits", 1, true))
end)

local priced = { { gpu = "A100 80GB", price_per_hour = 2, provider = "x", region = "far" },
  { gpu = "A100 80GB", price_per_hour = 1, provider = "x", spot = true },
  { gpu = "A100 80GB", price_per_hour = 1.9, provider = "x", region = "near" } }

tap.test("what it costs in each way to pay", function()
  local none = { data_gb = 0, disk_gb = 0, snapshots = 0, download_gb = 0 }
  local assume = { data_gb = 0, disk_gb = 0, snapshots = 0, download_gb = 0, spot_interruptions_per_hour = 0.5,
    checkpoint_every = "20m", spot_restart = "20m", reserved_1y_discount = 0.5, mix = { on_demand = 0.5, spot = 0.5 } }
  local r = rille.estimate { model = "gpt2", tokens = "10B", offers = priced, assume = assume }
  local p = r.plans[1]
  tap.equal({ #r.plans, p.region, p.price_per_hour, p.spot_price_per_hour }, { 1, "near", 1.9, 1 })
  local function cents(n) return math.floor(n * 100 + 0.5) end
  local billed = math.ceil(p.hours * 3600) / 3600
  tap.equal(cents(p.cost.on_demand), cents(1.9 * billed))
  tap.equal(cents(p.spot.hours), cents(p.hours / (1 - 0.5 * 0.5)))
  tap.equal(cents(p.spot.interruptions), cents(0.5 * p.spot.hours))
  tap.equal(cents(p.cost.spot), cents(math.ceil(p.spot.hours * 3600) / 3600))
  tap.equal(cents(p.cost.reserved_1y), cents(0.95 * p.hours))
  tap.equal(cents(p.cost.mix), cents((p.cost.on_demand + p.cost.spot) / 2))
  tap.equal(cents(p.reserved["1y"].commitment), cents(0.95 * 8760))
  tap.equal({ p.reserved["1y"].from, p.reserved["3y"].from }, { "assumed", "assumed" })
  tap.ok(p.buy.purchase > 10000 and p.cost.buy > 0)
  tap.equal(p.extras.total, 0)
  local stored = rille.estimate { model = "gpt2", tokens = "10B", offers = priced }
  tap.ok(stored.plans[1].extras.storage > 0 and stored.plans[1].extras.snapshots > 0)
  local addressed = rille.estimate { model = "gpt2", tokens = "10B", assume = none,
    offers = { { gpu = "A100 80GB", price_per_hour = 2, provider = "aws" } } }.plans[1]
  tap.equal(cents(addressed.extras.total), cents(0.005 * addressed.machines * addressed.hours))
  tap.ok(addressed.extras.addresses > 0)
  none.spot_interruptions_per_hour = 30
  local never = rille.estimate { model = "gpt2", tokens = "10B", offers = priced, assume = none }.plans[1]
  tap.equal({ never.spot, never.cost.spot, never.cost.mix }, {}, "interrupted before it catches up")
end)

tap.test("a provider's reserved price comes before the assumption, in its own currency", function()
  local told = { { gpu = "A100 80GB", price_per_hour = 10, currency = "CNY", dollars_per_hour = 1.5,
    reserved_1y_price_per_hour = 6 } }
  local r = rille.estimate { model = "gpt2", tokens = "10B", offers = told, assume = { reserved_3y_discount = 0.5 } }
  local reserved = r.plans[1].reserved
  tap.equal({ reserved["1y"].from, reserved["3y"].from }, { "offer", "assumed" })
  tap.ok(math.abs(reserved["1y"].price_per_hour - 0.9) < 1e-9 and math.abs(reserved["3y"].price_per_hour - 0.75) < 1e-9)
  tap.ok(r.recommendation:find("$7884, as offered", 1, true), r.recommendation)
end)

tap.test("the price of a disk that an offer tells goes before the assumption, and yields to a given one", function()
  local function plan(more, assume)
    local o = { gpu = "A100 80GB", price_per_hour = 10 }
    for key, value in pairs(more) do o[key] = value end
    return rille.estimate { model = "gpt2", tokens = "10B", offers = { o }, assume = assume }.plans[1]
  end
  local function near(a, b) return math.abs(a - b) < 1e-9 * math.max(1, b) end
  local plain, told = plan {}, plan { disk_price_per_gb_hour = 0.001 }
  tap.equal({ plain.disk.from, plain.disk.price_per_gb_month, told.disk.from }, { "assumed", 0.1, "offer" })
  tap.ok(near(told.extras.disks, told.machines * told.disk.gb * 0.001 * told.hours))
  tap.ok(near(told.extras.disks, plain.extras.disks * 7.3))
  tap.ok(near(told.cost.on_demand - plain.cost.on_demand, told.extras.disks - plain.extras.disks))
  local yuan = plan { disk_price_per_gb_hour = 0.001, currency = "CNY", dollars_per_hour = 1.5 }
  tap.ok(near(yuan.extras.disks, yuan.machines * yuan.disk.gb * 0.00015 * yuan.hours))
  local spot = plan { disk_price_per_gb_hour = 0.001, spot = true }
  tap.equal(spot.disk.from, "offer")
  local given = plan({ disk_price_per_gb_hour = 0.001 }, { disk_price = 0.2 })
  tap.equal({ given.disk.from, given.disk.price_per_gb_month }, { "given", 0.2 })
end)

tap.test("a deadline takes more machines, and gpus fixes their number", function()
  local function machines(options)
    options.model, options.tokens, options.offers = "gpt2", "10B", priced
    local plans = rille.estimate(options).plans
    return plans[1] and plans[1].machines
  end
  tap.equal(machines {}, 1)
  tap.ok(machines { deadline = "4h" } > 3)
  tap.equal(machines { gpus = 3 }, 3)
  tap.equal(machines { deadline = "10s" }, nil)
end)

tap.test("spot that its interruptions make late is marked, and not recommended", function()
  local function estimate(more, deadline)
    local offer = { gpu = "A100 80GB", gpu_count = 8, provider = "p" }
    for key, value in pairs(more) do offer[key] = value end
    return rille.estimate { model = "gpt2-xl", tokens = "100B", deadline = deadline or "24h", offers = { offer } }
  end
  local r = estimate { price_per_hour = 15, spot_price_per_hour = 5 }
  local plan = r.plans[1]
  tap.ok(plan.hours <= 24 and plan.spot.hours > 24 and plan.spot.late)
  tap.equal({ plan.cost.spot, plan.cost.mix, plan.spot.cost > 0 }, { nil, nil, true })
  tap.ok(tostring(r):find("too late ", 1, true) and r.recommendation:find("too late on spot: 27.5 h with", 1, true)
    and not r.recommendation:find(" on spot with", 1, true), tostring(r))
  local calm = estimate({ price_per_hour = 15, spot_price_per_hour = 5 }, "240h")
  tap.ok(calm.plans[1].cost.spot and not calm.plans[1].spot.late)
  -- Spot alone: as many as are done in time, with the interruptions.
  local alone = estimate { spot_price_per_hour = 5 }
  tap.ok(alone.plans[1].machines > plan.machines and alone.plans[1].spot.hours <= 24)
  local never = estimate({ spot_price_per_hour = 5 }, "6h")
  tap.equal({ #never.plans, never.skipped[1].obstacle }, { 0, "deadline" })
end)

tap.test("gpus is exact: machines that cannot be so many are skipped, with the way out", function()
  local function estimate(gpus, each)
    return rille.estimate { model = "gpt2", tokens = "10B", gpus = gpus, offers = { { gpu = "A100 80GB",
      gpu_count = each, price_per_hour = 15 } } }
  end
  local r = estimate(12, 8)
  tap.equal({ #r.plans, r.skipped[1].why, r.skipped[1].obstacle }, { 0,
    "has 8 GPUs, and gpus = 12 is no multiple: 8 or 16 would do", "gpus" })
  tap.ok(r.recommendation:find("is gpus: say a number", 1, true), r.recommendation)
  tap.equal(estimate(4, 8).skipped[1].why, "has 8 GPUs, and gpus = 4 is no multiple: 8 would do")
  tap.equal({ estimate(16, 8).plans[1].machines, estimate(12, 4).plans[1].machines }, { 2, 3 })
end)

tap.test("the obstacle is named: the latency is another than the number of requests", function()
  local function estimate(options)
    options.model, options.offers = options.model or "llama-7b", { { gpu = "A100 80GB", price_per_hour = 2 } }
    return rille.estimate(options)
  end
  local slow = estimate { requests_per_second = 1, latency = "10ms" }
  tap.equal(slow.skipped[1].obstacle, "latency")
  tap.ok(slow.skipped[1].why:find("at the soonest: too slow for the latency", 1, true), slow.skipped[1].why)
  tap.ok(slow.recommendation:find("is the latency: allow a longer one", 1, true)
    and not slow.recommendation:find("memory,", 1, true), slow.recommendation)
  local busy = estimate { requests_per_second = 1e5 }
  tap.equal(busy.skipped[1].obstacle, "machines")
  local large = estimate { model = "llama-70b", requests_per_second = 1 }
  tap.equal(large.skipped[1].obstacle, "memory")
  -- Its batches are small because of the latency.
  local both = estimate { requests_per_second = 400, latency = "2s" }
  tap.equal({ #both.plans, both.skipped[1] and both.skipped[1].obstacle }, { 0, "latency" })
  tap.ok(both.skipped[1].why:find("machines for the latency, and %d+ without it"), both.skipped[1].why)
  local some = estimate { requests_per_second = 10, latency = "3s" }
  tap.ok(some.plans[1].machines_unhurried < some.plans[1].machines)
  tap.ok(some.recommendation:find("The latency limit requires so many: without it", 1, true), some.recommendation)
  tap.ok(not estimate({ requests_per_second = 10 }).recommendation:find("The latency limit requires", 1, true))
end)

tap.test("a service: latency, replicas, months", function()
  local function plan(options)
    options.model, options.offers = options.model or "llama-7b", options.offers or priced
    return rille.estimate(options).plans[1]
  end
  local calm, busy = plan { requests_per_second = 1 }, plan { requests_per_second = 100 }
  tap.ok(busy.machines > calm.machines)
  tap.equal(calm.hours, 730)
  local quick = plan { requests_per_second = 1, latency = "3s" }
  tap.ok(quick.latency_s <= 3 and quick.requests_per_s < calm.requests_per_s)
  tap.equal(plan { requests_per_second = 1, latency = "10ms" }, nil)
  local split = plan { model = "llama-70b", requests_per_second = 1, offers = { { gpu = "A100 80GB", gpu_count = 8 } } }
  tap.equal({ split.gpus_per_replica, split.machines }, { 4, 1 })
  tap.ok(plan { requests_per_second = 1, precision = "int4" }.token_s < calm.token_s)
end)

tap.test("it prints as a table, with advice and the assumptions", function()
  local r = rille.estimate { model = "gpt2", tokens = "10B", offers = priced }
  local text = tostring(r)
  for _, part in ipairs { "gpt2: training on 10B tokens in bf16, 8.6e18 FLOP", "A100 80GB", "ON DEMAND", "SPOT",
    "3 YEARS", "Take one A100 80GB from x: one GPU is enough.", "interruptions expected" } do
    tap.ok(text:find(part, 1, true), part .. " is not in: " .. text)
  end
  local list = rille.estimate { model = "gpt2", tokens = 1, offers = priced, assume = { headroom = 0.5 } }.assumptions
  local headroom
  for _, a in ipairs(list) do if a.name == "headroom" then headroom = a end end
  tap.equal({ headroom.value, headroom.given }, { "0.5", true })
  tap.ok(tostring(list):find("* headroom", 1, true), tostring(list))
end)

tap.test("without a list it asks the providers", function()
  local r = rille.estimate { model = "gpt2", tokens = "1B" }
  tap.ok(#r.plans > 0)
end)

local function noted(r, name)
  for _, a in ipairs(r.assumptions) do if a.name == name then return a.why end end
end

local function plan_of(options, gpu, each)
  options.offers = { { gpu = gpu or "H100 80GB", gpu_count = each or 1, price_per_hour = 3 } }
  local r = rille.estimate(options)
  return r.plans[1], r
end

tap.test("a training step takes the time of its launches at the least", function()
  local images = 1281167
  local function resnet(more)
    local o = { model = "resnet50", epochs = 1, assume = { download_gb = 0 } }
    for key, value in pairs(more) do o[key] = value end
    return plan_of(o)
  end
  local one, r = resnet { batch = 1 }
  tap.ok(math.abs(one.hours * 3600 - images * 0.03) < 1, one.hours)
  tap.equal({ one.step_s, one.step_is_least }, { 0.03, true })
  tap.ok(r.recommendation:find("A step takes 30 ms because of its launches", 1, true), r.recommendation)
  local many, calm = resnet { batch = 1024 }
  tap.ok(many.hours < one.hours / 50 and not many.step_is_least)
  tap.ok(not calm.recommendation:find("launches", 1, true), calm.recommendation)
  tap.ok(math.abs(resnet({ batch = 1, assume = { step_floor = "3ms" } }).hours * 10 - one.hours) < 1e-6)
  -- Passes of one image each are launched one by one; those that fill the GPU are not slower for it.
  tap.ok(math.abs(resnet({ batch = 64, micro_batch = 1 }).hours - one.hours) < 0.01 * one.hours)
  tap.equal(resnet({ batch = 1024, micro_batch = 512 }).hours, many.hours)
  tap.ok(noted(r, "step_floor"):find("launch", 1, true))
  local service = rille.estimate { model = "resnet50", requests_per_second = 1, offers = { { gpu = "T4" } } }
  tap.equal(noted(service, "step_floor"), nil)
end)

tap.test("GPUs for which a step has no work are paid for nothing, and that is said", function()
  local plan, r = plan_of({ model = "gpt2", tokens = "1B", batch = 4, gpus = 64 }, "H100 80GB", 8)
  tap.equal(plan.gpus_idle, 60)
  tap.ok(r.recommendation:find("Only 4 of the 64 GPUs have work: batch = 4 is all that a step takes. The rest are " ..
    "paid for nothing.", 1, true), r.recommendation)
  tap.ok(tostring(r):find("data parallel, 60 idle", 1, true), tostring(r))
  local busy, full = plan_of({ model = "gpt2", tokens = "1B", batch = 64, gpus = 64 }, "H100 80GB", 8)
  tap.equal(busy.gpus_idle, nil)
  tap.ok(not full.recommendation:find("have work", 1, true), full.recommendation)
end)

tap.test("a price in another currency is none in dollars, unless a rate says what it is", function()
  local function plans(...)
    local r = rille.estimate { model = "gpt2", tokens = "1B", offers = { ... } }
    return r.plans, noted(r, "rates")
  end
  local function yuan(more)  -- as rille.offers gives it
    local o = { provider = "alibaba", id = "x", gpu = "A100 80GB", gpu_count = 1, region = "cn-beijing",
      currency = "CNY", price_per_hour = 14 }
    for key, value in pairs(more or {}) do o[key] = value end
    return o
  end
  local unknown, why = plans(yuan())
  local words = rille.estimate { model = "gpt2", tokens = "1B", offers = { yuan() } }.recommendation
  tap.ok(words:find("No prices: prices in CNY count as unknown", 1, true) == 1, words)
  tap.equal({ #unknown, unknown[1].price_per_hour, unknown[1].cost.on_demand }, { 1 })
  tap.ok(why:find("CNY", 1, true), why)
  local converted, none = plans(yuan { dollars_per_hour = 2, spot_price_per_hour = 7 })
  tap.equal({ converted[1].price_per_hour, converted[1].spot_price_per_hour, none }, { 2, 1 })
  tap.equal(plans(yuan { dollars_per_hour = 2, spot = true })[1].spot_price_per_hour, 2)
  local both = plans(yuan { provider = "y", price_per_hour = 1 }, yuan { provider = "d", currency = false })
  tap.equal({ both[1].provider, both[1].price_per_hour }, { "d", 14 }, "one yuan is not cheaper than 14 dollars")
end)

tap.test("a provider that fails is shown, and is not taken for one that has nothing", function()
  local broken = { provider = "aws", error = "no such key", kind = "auth", hint = "see doctor" }
  local r = rille.estimate { model = "gpt2", tokens = "1B", offers = { broken, broken } }
  tap.equal({ r.skipped[1].provider, r.skipped[1].why, r.skipped[1].error, #r.skipped }, { "aws", "no such key",
    "auth", 1 })
  tap.ok(tostring(r):find("not: aws: no such key", 1, true), tostring(r))
  local why = noted(r, "offers")
  tap.ok(why:find("1 of the providers failed", 1, true) and not why:find("no provider offers", 1, true), why)
  local beside = rille.estimate { model = "llama-70b", tokens = "1B", offers = { { gpu = "T4" }, broken } }
  tap.equal({ beside.skipped[1].provider, beside.skipped[2].gpu, noted(beside, "offers") }, { "aws", "T4" })
end)

tap.test("the least that a machine costs, and the network that its offer tells of, count", function()
  local assume = { data_gb = 0, disk_gb = 0, snapshots = 0, download_gb = 0 }
  local function plan(more, options)
    local o = { gpu = "A100 80GB", gpu_count = 8, price_per_hour = 16 }
    for key, value in pairs(more) do o[key] = value end
    local e = { model = "gpt2", tokens = "1B", assume = assume, offers = { o } }
    for key, value in pairs(options or {}) do e[key] = value end
    return rille.estimate(e).plans[1]
  end
  local least = { unit_s = 1, minimum_s = 0, minimum_micros = 500e6 }
  tap.ok(plan {}.cost.on_demand < 100)
  tap.equal(plan { billing = least }.cost.on_demand, 500)
  tap.equal(plan({ billing = least }, { gpus = 16 }).cost.on_demand, 1000)
  tap.equal(plan { billing = least, spot = true }.cost.spot, 500)
  tap.equal(plan { billing = least, currency = "CNY", dollars_per_hour = 1.6 }.cost.on_demand, 50)
  local function hours(more, options) return plan(more, options or { model = "llama-7b", gpus = 64 }).hours end
  tap.equal(hours { network_gbps = 3200 }, hours {})
  tap.ok(hours { network_gbps = 10 } > 1.5 * hours {})
  local given = { data_gb = 0, network_gbps = 3200 }
  tap.equal(hours({ network_gbps = 10 }, { model = "llama-7b", gpus = 64, assume = given }), hours {})
end)

tap.test("it asks for GPUs, unless the query says what for", function()
  local ask = require "rille.estimate.offers".ask
  local function asked(query)
    local all = {}
    ask(query, function(q) all[#all + 1] = q; return {} end)
    return all
  end
  tap.equal(asked {}, { { gpu = "any", spot = false }, { gpu = "any", spot = true } })
  tap.equal(asked { gpu = "A100", spot = true }, { { gpu = "A100", spot = true } })
end)

tap.test("what cannot be is refused", function()
  local function refuses(text, options) return tap.raises("invalid", text, rille.estimate, options) end
  refuses("which model", {})
  local err = refuses("no model 'gpt4' is known", { model = "gpt4", tokens = 1 })
  tap.ok(err.hint:find("did you mean 'gpt2'", 1, true), err.hint)
  refuses("how much work", { model = "gpt2" })
  refuses("how much?", { model = "gpt2", epochs = 2 })
  refuses("tokens = lots", { model = "gpt2", tokens = "lots" })
  refuses("learns from images", { model = "resnet50", tokens = 1e9 })
  refuses("has no meaning for training", { model = "gpt2", tokens = 1, latency = "1s" })
  refuses("has no meaning for inference", { model = "gpt2", requests_per_second = 1, epochs = 2 })
  refuses("answers in one pass", { model = "resnet50", requests_per_second = 1, output_tokens = 2 })
  refuses("more than the context", { model = "gpt2", requests_per_second = 1, prompt_tokens = 1000 })
  local precision = refuses("precision = bf17", { model = "gpt2", tokens = 1, precision = "bf17" })
  tap.ok(precision.hint:find("did you mean 'bf16'", 1, true), precision.hint)
  refuses("int8", { model = "gpt2", tokens = 1, precision = "int8" })
  refuses("deadline = soon", { model = "gpt2", tokens = 1, deadline = "soon" })
  refuses("tokns", { model = "gpt2", tokns = 1 })
  refuses("hedroom", { model = "gpt2", tokens = 1, assume = { hedroom = 1 } })
  refuses("add up to 0.5", { model = "gpt2", tokens = 1, assume = { mix = { spot = 0.5 } } })
  refuses("headroom = 3", { model = "gpt2", tokens = 1, assume = { headroom = 3 } })
  refuses("prise_per_hour", { model = "gpt2", tokens = 1, offers = { { gpu = "A100", prise_per_hour = 1 } } })
  refuses("offers = A100", { model = "gpt2", tokens = 1, offers = "A100" })
end)

tap.test("the facts of GPUs", function()
  local a100 = rille.gpus("NVIDIA A100-SXM4-80GB")
  tap.equal({ a100.name, a100.capability, a100.flops.bf16, a100.memory_bytes }, { "A100 80GB SXM", 80, 312e12, 80e9 })
  tap.equal(rille.gpus("T4").flops.bf16, nil)
  tap.ok(tostring(a100):find("source: NVIDIA", 1, true))
  tap.ok(#rille.gpus() > 30 and tostring(rille.gpus()):find("ARCHITECTURE", 1, true))
  local err = tap.raises("invalid", "'A1000'", rille.gpus, "A1000")
  tap.ok(err.hint:find("A100", 1, true), err.hint)
end)

tap.done()
