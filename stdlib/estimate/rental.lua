-- Internal: an estimate of a rental: GPUs for so many hours, whatever they do; the machines alone.
local read = require "rille.estimate.read"

local rental = {}

-- The work of a rental: hours from a number of hours or a duration, and how many GPUs in all.
function rental.work(o)
  local hours = o.hours
  if type(hours) == "string" and not tonumber(hours) then hours = read.seconds("hours", hours) / 3600
  else hours = read.count("hours", tonumber(hours) or hours) end
  return { mode = "rental", hours = hours, gpus = read.whole("gpus", o.gpus) }
end

-- Returns a plan of machines of that kind, or nil, why not, and the obstacle.
function rental.plan(work, group)
  local each = group.gpu_count
  local machines = work.gpus and work.gpus / each or 1
  if machines % 1 ~= 0 then return nil, ("gpus = %d is no multiple of %d"):format(work.gpus, each), "gpus" end
  local plan = { machines = machines, gpus = machines * each, gpus_each = each, gpu = group.gpu, hours = work.hours,
    facts = group.facts.name, confirmed = group.facts.confirmed, provider = group.provider, region = group.region,
    price_per_hour = group.price_per_hour, spot_price_per_hour = group.spot_price_per_hour,
    list_price_of = group.list_price_of, gpu_hours = machines * each * work.hours, cost = {}, reserved = {} }
  for kind, field in pairs { on_demand = "price_per_hour", spot = "spot_price_per_hour",
    reserved_1y = "reserved_1y_price_per_hour", reserved_3y = "reserved_3y_price_per_hour" } do
    plan.cost[kind] = group[field] and group[field] * machines * work.hours
  end
  for term, years in pairs { ["1y"] = 1, ["3y"] = 3 } do
    local price = group["reserved_" .. term .. "_price_per_hour"]
    plan.reserved[term] = price and { price_per_hour = price, commitment = price * machines * 8760 * years,
      from = group.list_price_of and "list" or "offer" }
  end
  return plan
end

return rental
