-- Internal: what a plan costs in dollars, extras included: on demand, on spot, reserved, a mix of these, and with
-- bought GPUs.
local money = {}

-- The cost of one machine: each started billing unit is paid in full, with a minimum time and a minimum amount.
local function billed(billing, price, hours)
  local unit = (billing and billing.unit_s or 1) / 3600
  local least = (billing and billing.minimum_s or 0) / 3600
  return math.max(price * math.max(math.ceil(hours / unit - 1e-9) * unit, least), billing and billing.minimum or 0)
end

-- A plan on spot machines: one interrupted machine stops all machines; each interruption costs half the time between
-- two checkpoints plus the restart. late: whether the work ends after the deadline.
function money.on_spot(plan, work, assumed)
  local rate = assumed.spot_interruptions_per_hour * plan.machines
  local lost = work.mode == "training" and (assumed.checkpoint_every / 2 + assumed.spot_restart) / 3600 or 0
  local left = 1 - rate * lost
  if left < 0.05 then return nil end  -- nil: interruptions come too often to make progress
  local hours = plan.hours / left
  return { hours = hours, interruptions = rate * hours, lost_hours = hours - plan.hours,
    late = work.deadline_s and hours * 3600 > work.deadline_s or nil }
end

-- Providers that charge for a machine's public IP address.
local addressed = { aws = true, azure = true, gcp = true }

-- Costs besides the machines: storage, disks, addresses, snapshots and transfer.
local function extras(plan, offer, work, model, assumed)
  local months = plan.hours / 730
  local training = work.mode == "training"
  local data = training and (assumed.data_gb or work.data_gb) or 0
  local checkpoint = training and work.checkpoint_bytes / 1e9 or 0
  local disk = assumed.disk_gb or 50 + data + 3 * checkpoint + work.memory.weights_bytes / 1e9
  plan.disk = { gb = disk, price_per_gb_month = assumed.disk_price, from = assumed.disk_price_from }
  local download = assumed.download_gb
    or (training and model.params * 4 / 1e9 or work.requests_per_second * plan.hours * 3600 * 1e3 / 1e9)
  local out = { storage = data * assumed.storage_price * months,
    disks = plan.machines * disk * assumed.disk_price * months,
    addresses = addressed[offer.provider] and plan.machines * assumed.address_price * plan.hours or 0,
    snapshots = training and assumed.snapshots * checkpoint * assumed.snapshot_price * (months + 1) or 0,
    transfer = download * assumed.transfer_price }
  out.total = out.storage + out.disks + out.addresses + out.snapshots + out.transfer
  return out
end

-- The cost of buying the GPUs and their servers; a cloud's disks and transfer are not included.
local function bought(plan, facts, assumed)
  if facts.rough_price <= 0 then return nil end
  local purchase = plan.gpus * facts.rough_price * (1 + assumed.buy_host)
  local busy_hours = assumed.buy_years * 8760 * assumed.buy_use
  local power = plan.gpus * facts.power_w * assumed.power_factor / 1000 * assumed.power_price
  local per_hour = purchase * (1 + assumed.buy_upkeep * assumed.buy_years) / busy_hours + power
  return { purchase = purchase, power_per_hour = power, per_hour = per_hour, cost = per_hour * plan.hours }
end

local function mixed(cost, mix)
  local sum = 0
  for name, share in pairs(mix) do
    if share > 0 then
      if not cost[name] then return nil end
      sum = sum + share * cost[name]
    end
  end
  return sum
end

-- Adds to the plan: cost (dollars for each way of paying, with extras), extras, spot, buy, reserved. If the work on
-- spot machines would end after the deadline, its cost is only in plan.spot.cost.
function money.add(plan, offer, work, model, facts, assumed)
  local demand = offer.price_per_hour
  local spot = offer.spot_price_per_hour
    or (demand and assumed.spot_discount and demand * (1 - assumed.spot_discount))
  plan.spot = money.on_spot(plan, work, assumed)
  plan.extras = extras(plan, offer, work, model, assumed)
  plan.buy = bought(plan, facts, assumed)
  plan.reserved = {}
  for term, years in pairs { ["1y"] = 1, ["3y"] = 3 } do
    local told = offer["reserved_" .. term .. "_price_per_hour"]
    local price = told or (demand and demand * (1 - assumed["reserved_" .. term .. "_discount"]))
    plan.reserved[term] = price and { price_per_hour = price, commitment = price * plan.machines * 8760 * years,
      pays_above = demand and demand > 0 and price / demand or nil,
      from = not told and "assumed" or offer.list_price_of and "list" or "offer" }
  end
  local function machines_for(price, hours, billing)
    return price and hours and plan.machines * billed(billing, price, hours) + plan.extras.total or nil
  end
  local cost = { on_demand = machines_for(demand, plan.hours, offer.billing),
    spot = machines_for(spot, plan.spot and plan.spot.hours, offer.spot_billing or offer.billing),
    buy = plan.buy and plan.buy.cost }
  for _, term in ipairs { "1y", "3y" } do
    local reserved = plan.reserved[term]
    cost["reserved_" .. term] = reserved and reserved.price_per_hour * plan.machines * plan.hours + plan.extras.total
  end
  if plan.spot and plan.spot.late then plan.spot.cost, cost.spot = cost.spot, nil end
  cost.mix = mixed(cost, assumed.mix)
  plan.cost = cost
end

return money
