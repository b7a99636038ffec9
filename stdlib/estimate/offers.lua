-- Internal: the offers that an estimate is about: asked of the providers, or given as a list; one row for each kind of
-- machine, with the cheapest price on demand and on spot.
local native = require "rille.native"
local rille = require "rille"
local read = require "rille.estimate.read"

local fields = { "gpu", "gpu_count", "gpu_memory_bytes", "price_per_hour", "spot_price_per_hour",
  "reserved_1y_price_per_hour", "reserved_3y_price_per_hour", "provider", "region", "spot", "billing" }

-- Without any offer the usual GPUs stand for themselves, without a price.
local usual = { { "T4", 1 }, { "L4", 1 }, { "A10", 1 }, { "RTX 4090", 1 }, { "L40S", 1 }, { "A100 80GB", 1 },
  { "A100 80GB", 8 }, { "H100 80GB", 1 }, { "H100 80GB", 8 }, { "H200", 8 }, { "B200", 8 } }

local function check(offer, index)
  if type(offer) ~= "table" then
    read.invalid(("offers[%d] is no table"):format(index), "offers = { { gpu = \"A100 80GB\", gpu_count = 8, " ..
      "price_per_hour = 20 } }, or what rille.offers gave")
  end
  if offer.id == nil then native.check_options(offer, ("rille.estimate's offers[%d]"):format(index), fields) end
  if offer.gpu ~= nil and type(offer.gpu) ~= "string" then
    read.invalid(("offers[%d].gpu = %s; a name is needed"):format(index, tostring(offer.gpu)))
  end
  for _, key in ipairs { "price_per_hour", "spot_price_per_hour", "reserved_1y_price_per_hour",
    "reserved_3y_price_per_hour" } do
    read.count(("offers[%d].%s"):format(index, key), offer[key], 0)
  end
  read.whole(("offers[%d].gpu_count"):format(index), offer.gpu_count ~= 0 and offer.gpu_count or nil)
end

-- Both kinds, unless the query says which.
local function ask(query)
  local all = {}
  for _, spot in ipairs { false, true } do
    if query.spot == nil or query.spot == spot then
      local q = {}
      for key, value in pairs(query) do q[key] = value end
      q.spot = spot
      for _, offer in ipairs(rille.offers(q)) do all[#all + 1] = offer end
    end
  end
  return all
end

local function cheaper(new, old) return new and (not old or new < old) end

local function merge(list)
  local groups, by_key = {}, {}
  for _, offer in ipairs(list) do
    local key = ("%s|%s|%s|%s"):format(offer.provider or "", offer.gpu, offer.gpu_count or 1,
      offer.gpu_memory_bytes or 0)
    local group = by_key[key]
    if not group then
      group = { gpu = offer.gpu, gpu_count = offer.gpu_count or 1, gpu_memory_bytes = offer.gpu_memory_bytes,
        provider = offer.provider }
      by_key[key], groups[#groups + 1] = group, group
    end
    local price = offer.price_per_hour
    local spot_price = offer.spot_price_per_hour or (offer.spot and price or nil)
    if offer.spot then price = nil end
    if cheaper(price, group.price_per_hour) then
      group.price_per_hour, group.region, group.billing = price, offer.region, offer.billing
    end
    if cheaper(spot_price, group.spot_price_per_hour) then
      group.spot_price_per_hour, group.spot_region = spot_price, offer.region
    end
    for _, term in ipairs { "reserved_1y_price_per_hour", "reserved_3y_price_per_hour" } do
      if cheaper(offer[term], group[term]) then group[term] = offer[term] end
    end
  end
  for _, group in ipairs(groups) do group.region = group.region or group.spot_region end
  return groups
end

local offers = {}

-- A list of kinds of machines, each with `facts`; and the names of those that nothing is known of.
function offers.gather(given)
  if given ~= nil and type(given) ~= "table" then
    read.invalid(("offers = %s; a query or a list is needed"):format(tostring(given)), "offers = { gpu = \"A100\" }")
  end
  local list = given and #given > 0 and given or nil
  if list then
    for i, offer in ipairs(list) do check(offer, i) end
  else
    list = ask(given or {})
  end
  local with_gpu = {}
  for _, offer in ipairs(list) do
    if offer.gpu and offer.gpu ~= "" and offer.gpu_count ~= 0 then with_gpu[#with_gpu + 1] = offer end
  end
  local groups, found, unknown = merge(with_gpu), {}, {}
  local unpriced = #groups == 0
  if unpriced then
    for i, row in ipairs(usual) do groups[i] = { gpu = row[1], gpu_count = row[2] } end
  end
  for _, group in ipairs(groups) do
    group.facts = native.gpu_facts(group.gpu, group.gpu_memory_bytes)
    if group.facts then found[#found + 1] = group
    else unknown[#unknown + 1] = { gpu = group.gpu, gpu_count = group.gpu_count, provider = group.provider,
      why = "nothing is known of this GPU: see rille.gpus()" } end
  end
  return found, unknown, unpriced
end

return offers
