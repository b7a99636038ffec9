-- Internal: the text of an estimate: the table, and the recommendation in words.
local aligned = require "rille.tools.aligned"

local words = {}

local function dollars(n)
  if not n then return "-" end
  if n == 0 then return "$0" end
  if n >= 1e6 then return ("$%.2fM"):format(n / 1e6) end
  return (n >= 100 and "$%.0f" or n >= 0.1 and "$%.2f" or "$%.4f"):format(n)
end

local function duration(hours)
  local s = hours * 3600
  if s < 1 then return ("%.0f ms"):format(s * 1e3) end
  if s < 120 then return ("%.1f s"):format(s) end
  if s < 7200 then return ("%.0f min"):format(s / 60) end
  if hours < 72 then return ("%.1f h"):format(hours) end
  return ("%.1f days"):format(hours / 24)
end

words.duration = duration

local units = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" } }

-- Formats a number of tokens or parameters as "10B".
local function many(n)
  for _, u in ipairs(units) do if n >= u[1] then return ("%.3g%s"):format(n / u[1], u[2]) end end
  return ("%.0f"):format(n)
end
words.many = many

local function power_of_ten(n) return (("%.3g"):format(n):gsub("e%+?(%-?)0*", "e%1")) end

local function times(n) return (n < 10 and "%.2g" or "%.0f"):format(n) end

local function gigabytes(bytes)
  if bytes >= 1e12 then return ("%.3g TB"):format(bytes / 1e12) end
  return (bytes < 1e9 and "%.2g GB" or "%.3g GB"):format(bytes / 1e9)
end

local function machines_of(plan)
  if plan.gpus == 1 then return "one " .. plan.gpu end
  local each = ("%d x %s"):format(plan.gpus_each, plan.gpu)
  return plan.machines == 1 and each or ("%d machines of %s"):format(plan.machines, each)
end
words.machines_of = machines_of

local function layout_of(plan, r)
  local parts = {}
  if plan.sharded then parts[1] = "sharded" elseif plan.gpus > 1 then parts[1] = "data parallel" end
  if plan.split > 1 then parts[#parts + 1] = "split" end
  if plan.recompute then parts[#parts + 1] = "recomputes" end
  if plan.gpus_idle then parts[#parts + 1] = ("%d idle"):format(plan.gpus_idle) end
  if plan.precision ~= r.precision then parts[#parts + 1] = plan.precision end
  return #parts > 0 and table.concat(parts, ", ") or "-"
end

local costs = { { "ON DEMAND", "on_demand" }, { "SPOT", "spot" }, { "1 YEAR", "reserved_1y" },
  { "3 YEARS", "reserved_3y" }, { "MIX", "mix" }, { "BOUGHT", "buy" } }

local plan_columns = { training = { "LAYOUT", "TIME", "INTERRUPTED" },
  inference = { "REPLICAS", "BATCH", "LATENCY", "INTERRUPTED" }, rental = { "PER HOUR" } }

-- The columns of a plan that its kind of estimate alone has.
local function own_columns(plan, result)
  if result.kind == "rental" then
    local price = plan.price_per_hour or plan.spot_price_per_hour
    return { price and dollars(price * plan.machines) .. (plan.price_per_hour and "" or " spot") or "-" }
  end
  local late = plan.spot and plan.spot.cost
  local often = plan.spot and (plan.cost.spot or late) and times(plan.spot.interruptions) .. " times" or "-"
  if result.kind == "training" then return { layout_of(plan, result), duration(plan.hours), often } end
  return { ("%d of %d"):format(plan.replicas, plan.gpus_per_replica), tostring(plan.batch),
    duration(plan.latency_s / 3600), often }
end

local function table_of(result)
  local rows = { { "GPU", "FROM", "MACHINES" } }
  local shown = result.kind == "rental" and 4 or #costs
  for _, name in ipairs(plan_columns[result.kind]) do table.insert(rows[1], name) end
  for i = 1, shown do table.insert(rows[1], costs[i][1]) end
  if result.list_price_of then table.insert(rows[1], "LIST PRICE OF") end
  for i = 1, math.min(#result.plans, result.rows) do
    local plan = result.plans[i]
    local place = plan.provider and plan.provider .. (plan.region and plan.region ~= "" and " " .. plan.region or "")
    local row = { plan.gpu, place or "-", ("%d x %d"):format(plan.machines, plan.gpus_each) }
    for _, text in ipairs(own_columns(plan, result)) do row[#row + 1] = text end
    for n = 1, shown do
      local name = costs[n][2]
      row[#row + 1] = name == "spot" and plan.spot and plan.spot.cost and "too late" or dollars(plan.cost[name])
    end
    if result.list_price_of then row[#row + 1] = plan.list_price_of or "-" end
    rows[#rows + 1] = row
  end
  local text = aligned(rows, 2)
  if #result.plans > result.rows then text = text .. ("\nand %d more"):format(#result.plans - result.rows) end
  return text
end

local function memory_of(m, what)
  local parts = { "weights " .. gigabytes(m.weights_bytes) }
  for _, row in ipairs { { "gradients", "gradients_bytes" }, { "optimiser", "optimizer_bytes" },
    { "key-value cache", "cache_bytes" }, { "activations", "activations_bytes" }, { "headroom", "headroom_bytes" } } do
    if m[row[2]] then parts[#parts + 1] = row[1] .. " " .. gigabytes(m[row[2]]) end
  end
  return ("memory: %s = %s (%d %s at a time)"):format(table.concat(parts, " + "), gigabytes(m.total_bytes), m.together,
    m.together == 1 and what:gsub("s$", "") or what)
end

local function title_of(r)
  if r.kind == "rental" then
    return ("machines for %s; disks, addresses and transfer come on top, and a commitment is billed for its whole term")
      :format(duration(r.hours))
  end
  if r.kind == "training" then
    return ("%s: training on %s %s in %s, %s FLOP"):format(r.model.name, many(r.amount), r.unit, r.precision,
      power_of_ten(r.flops))
  end
  local each = r.prompt_tokens and (" of %d + %d tokens"):format(r.prompt_tokens, r.output_tokens) or ""
  return ("%s: %g requests%s per second in %s, %s FLOP each; costs are per month"):format(r.model.name,
    r.requests_per_second, each, r.precision, power_of_ten(r.flops))
end

-- Whether the estimate considered no machine at all, not even an unsuitable one.
local function untried(r)
  for _, skipped in ipairs(r.skipped) do if skipped.gpu then return false end end
  return #r.plans == 0
end

-- The whole estimate as text.
function words.print(r)
  local together = r.kind == "training" and (r.unit == "tokens" and "sequences" or "images") or "requests"
  local lines = { title_of(r) }
  if r.memory then lines[2] = memory_of(r.memory, together) end
  lines[#lines + 1] = ""
  lines[#lines + 1] = #r.plans > 0 and table_of(r) or untried(r) and "(no machine to estimate)"
    or "(no machine fits)"
  for i = 1, math.min(#r.skipped, 5) do
    local s = r.skipped[i]
    local from = s.provider and " from " .. s.provider or ""
    local what = s.gpu and ("%d x %s%s"):format(s.gpu_count, s.gpu, from) or s.provider or "a provider"
    lines[#lines + 1] = ("not: %s: %s"):format(what, s.why)
  end
  if #r.skipped > 5 then lines[#lines + 1] = ("not: %d more, see result.skipped"):format(#r.skipped - 5) end
  lines[#lines + 1] = ""
  lines[#lines + 1] = r.recommendation
  if r.kind == "rental" then return table.concat(lines, "\n") end
  lines[#lines + 1] = ("All of it rests on %d assumptions: print(result.assumptions)"):format(#r.assumptions)
  return table.concat(lines, "\n")
end

local function shape_of(plan)
  if plan.gpus == 1 then return "one GPU is enough" end
  if plan.machines == 1 then return ("one node of %d GPUs"):format(plan.gpus) end
  return ("a cluster of %d machines with %d GPUs"):format(plan.machines, plan.gpus)
end

local function price_words(r, plan)
  local out = {}
  local per = r.kind == "inference" and " a month" or ""
  if plan.cost.on_demand then out[1] = dollars(plan.cost.on_demand) .. per .. " on demand" end
  if plan.cost.spot then
    local often = plan.spot and (" with %s interruptions expected"):format(times(plan.spot.interruptions)) or ""
    if r.kind == "training" then often = often .. (" that cost %s"):format(duration(plan.spot.lost_hours)) end
    out[#out + 1] = dollars(plan.cost.spot) .. per .. " on spot" .. often
  end
  if plan.spot and plan.spot.cost then
    out[#out + 1] = ("too late on spot: %s with %s interruptions"):format(duration(plan.spot.hours),
      times(plan.spot.interruptions))
  end
  if #out == 0 then return "no price is offered" end
  return table.concat(out, ", ") .. (plan.list_price_of and (" (list price of %s)"):format(plan.list_price_of) or "")
end

local function network_words(plan)
  local n = plan.network
  if not n then return end
  local ethernet, rdma = n.bytes_per_step / 12.5e9, n.bytes_per_step / 400e9
  local exchange = ("Each step of %s exchanges %s between its machines: "):format(duration(n.step_seconds / 3600),
    gigabytes(n.bytes_per_step))
  return exchange .. ("%s over Ethernet of 100 Gbit/s, %s over RDMA of 3.2 Tbit/s."):format(duration(ethernet / 3600),
    duration(rdma / 3600)) .. (ethernet > 0.2 * n.step_seconds and " Take a cluster with RDMA." or " Ethernet will do.")
end

-- Says when reserving or buying is worthwhile.
local function commitment_words(plan)
  local out = {}
  local year = plan.reserved["1y"]
  if year and year.pays_above and year.pays_above < 1 then
    out[1] = ("A year's reservation (%s%s) pays from %.0f %% of use on."):format(dollars(year.commitment),
      year.from == "offer" and ", as offered" or "", 100 * year.pays_above)
  end
  if plan.buy and plan.cost.on_demand and plan.price_per_hour then
    local saved = plan.price_per_hour * plan.machines - plan.buy.power_per_hour
    if saved > 0 then
      out[#out + 1] = ("Buying (roughly %s) pays after %.0f hours of use."):format(dollars(plan.buy.purchase),
        plan.buy.purchase / saved)
    end
  end
  return #out > 0 and table.concat(out, " ") or nil
end

local function rate(n) return (n < 100 and "%.3g" or "%.0f"):format(n) end

-- Describes other plans worth considering: one GPU, the cheapest on spot, and the fastest.
local function other_words(r, best)
  local single, fastest, on_spot = nil, best, best
  for _, plan in ipairs(r.plans) do
    if plan.gpus == 1 and not single then single = plan end
    if plan.hours < fastest.hours then fastest = plan end
    if plan.cost.spot and plan.cost.spot < (on_spot.cost.spot or math.huge) then on_spot = plan end
  end
  local out = {}
  if r.kind ~= "rental" and best.gpus > 1 and single then out[1] = { "One GPU does it, too", single } end
  if on_spot ~= best and on_spot ~= single then out[#out + 1] = { "The cheapest on spot", on_spot } end
  if r.kind == "training" and fastest.hours < 0.7 * best.hours then out[#out + 1] = { "The fastest", fastest } end
  for i, other in ipairs(out) do
    local plan = other[2]
    local how = plan.latency_s and ("an answer in %s"):format(duration(plan.latency_s / 3600)) or duration(plan.hours)
    out[i] = ("%s: %s, %s, %s."):format(other[1], machines_of(plan), how, price_words(r, plan))
  end
  return #out > 0 and table.concat(out, "\n") or nil
end

-- The obstacles that exclude plans: name, words, and how to avoid the obstacle.
local obstacles = {
  { "memory", "the memory", "take GPUs with more of it, or a smaller batch, micro_batch or precision" },
  { "gpus", "gpus", "say a number that these machines come in and that holds the model" },
  { "deadline", "the deadline", "allow more time, or take faster GPUs" },
  { "latency", "the latency", "allow a longer one, ask for shorter answers, or take a smaller model or precision " ..
    "or GPUs with faster memory; more machines do not help" },
  { "machines", "the number of machines", "take larger machines or faster GPUs, or raise assume.machines_max" },
}

local function nothing_words(r)
  local out = {}
  for _, row in ipairs(obstacles) do
    local n = 0
    for _, skipped in ipairs(r.skipped) do if skipped.obstacle == row[1] then n = n + 1 end end
    if n > 0 then out[#out + 1] = ("What rules out %d is %s: %s."):format(n, row[2], row[3]) end
  end
  if #out == 0 then return "Nothing here can do it: no machine with known data was found." end
  return "Nothing here can do it. " .. table.concat(out, " ")
end

local function latency_words(plan)
  if not plan.machines_unhurried then return nil end
  return ("The latency limit requires so many: without it %s would be enough."):format(
    plan.machines_unhurried == 1 and "one machine" or plan.machines_unhurried .. " machines")
end

-- Notes on GPUs without work, and on steps whose time is mostly kernel launches.
local function batch_words(r, plan)
  local out = {}
  if plan.gpus_idle then
    local busy = plan.gpus - plan.gpus_idle
    out[1] = ("Only %d of the %d GPUs %s work: batch = %d is all that a step takes. %s."):format(busy, plan.gpus,
      busy == 1 and "has" or "have", r.batch, plan.sharded and "The rest only hold a part of the model" or
      "The rest are paid for nothing")
  end
  if plan.step_is_least then
    out[#out + 1] = ("A step takes %s because of its launches, not of its work: a larger batch is done sooner " ..
      "(assume.step_floor)."):format(duration(plan.step_s / 3600))
  end
  return #out > 0 and table.concat(out, " ") or nil
end

-- Says in a sentence why there is no live price; nil if there are live prices.
local function unpriced_words(r)
  return r.unpriced and ("%s: %s."):format(r.list_price_of and "No live prices" or "No prices", r.unpriced) or nil
end

-- The recommended machines of a rental.
local function recommend_rental(r, best)
  local text = { unpriced_words(r) }
  local place = best.provider and " from " .. best.provider or ""
  text[#text + 1] = ("Take %s%s: %s for %s."):format(machines_of(best), place, price_words(r, best),
    duration(best.hours))
  text[#text + 1] = other_words(r, best)
  return table.concat(text, "\n")
end

-- The recommended plan and the reasons. r.plans is ordered by cost.
function words.recommend(r)
  local best, unpriced = r.plans[1], unpriced_words(r)
  if not best then
    if unpriced and untried(r) then return unpriced end
    return (unpriced and unpriced .. "\n" or "") .. nothing_words(r)
  end
  if r.kind == "rental" then return recommend_rental(r, best) end
  local place = best.provider and (" from " .. best.provider) or ""
  local how = r.kind == "training" and ("%s of work"):format(duration(best.hours))
    or ("An answer in %s, %s requests per second at most"):format(duration(best.latency_s / 3600),
      rate(best.requests_per_s * best.replicas))
  local text = { ("Take %s%s: %s. %s; %s."):format(machines_of(best), place, shape_of(best), how,
    price_words(r, best)) }
  if unpriced then table.insert(text, 1, unpriced) end
  text[#text + 1] = batch_words(r, best)
  text[#text + 1] = network_words(best)
  text[#text + 1] = latency_words(best)
  text[#text + 1] = other_words(r, best)
  text[#text + 1] = commitment_words(best)
  return table.concat(text, "\n")
end

return words
