-- Internal: the offers for an estimate, from the providers or from a given list; one row per kind of machine, with
-- the cheapest price on demand and on spot, and list prices where no live price is known.
local native = require "rille.native"
local rille = require "rille"
local listed = require "rille.estimate.listed"
local nothing = require "rille.estimate.nothing"
local read = require "rille.estimate.read"

local fields = { "gpu", "gpu_count", "gpu_memory_bytes", "price_per_hour", "spot_price_per_hour",
  "reserved_1y_price_per_hour", "reserved_3y_price_per_hour", "provider", "region", "spot", "billing", "currency",
  "dollars_per_hour", "network_gbps", "disk_price_per_gb_hour" }

local function check(offer, index)
  if type(offer) ~= "table" then
    read.invalid(("offers[%d] is not a table"):format(index), "offers = { { gpu = \"A100 80GB\", gpu_count = 8, " ..
      "price_per_hour = 20 } }, or the result of rille.offers")
  end
  -- skip the rows with which rille.offers reports failures and omissions
  if offer.error ~= nil or offer.note ~= nil then return end
  if offer.id == nil then native.check_options(offer, ("rille.estimate's offers[%d]"):format(index), fields) end
  if offer.gpu ~= nil and type(offer.gpu) ~= "string" then
    read.invalid(("offers[%d].gpu = %s; a name is needed"):format(index, tostring(offer.gpu)))
  end
  for _, key in ipairs { "price_per_hour", "dollars_per_hour", "network_gbps", "spot_price_per_hour",
    "reserved_1y_price_per_hour", "reserved_3y_price_per_hour", "disk_price_per_gb_hour" } do
    read.count(("offers[%d].%s"):format(index, key), offer[key], 0)
  end
  read.whole(("offers[%d].gpu_count"):format(index), offer.gpu_count ~= 0 and offer.gpu_count or nil)
end

-- Queries on demand and spot offers unless the query sets spot, and offers with GPUs unless the query names a GPU:
-- many providers price only the first matching types, and without a GPU in the query these would be small machines
-- without GPUs.
local function ask(query, of)
  local all = {}
  for _, spot in ipairs { false, true } do
    if query.spot == nil or query.spot == spot then
      local q = {}
      for key, value in pairs(query) do q[key] = value end
      q.spot, q.gpu = spot, q.gpu or "any"
      for _, offer in ipairs(of(q)) do all[#all + 1] = offer end
    end
  end
  return all
end

local function cheaper(new, old) return new and (not old or new < old) end

-- Returns how many dollars one unit of the offer's currency is worth; nil if unknown.
local function rate_of(offer)
  if not offer.currency or offer.currency == "USD" then return 1 end
  local price, dollars = offer.price_per_hour, offer.dollars_per_hour
  return dollars and price and price > 0 and dollars / price or nil
end

local function in_dollars(price, rate) return price and rate and price * rate or nil end

-- Returns the offer's billing rules, with the minimum amount in dollars.
local function billing_of(offer, rate)
  local b = offer.billing
  return b and { unit_s = b.unit_s, minimum_s = b.minimum_s, minimum = (b.minimum_micros or 0) / 1e6 * (rate or 0) }
end

local function merge(list)
  local groups, by_key = {}, {}
  for _, offer in ipairs(list) do
    local key = ("%s|%s|%s|%s"):format(offer.provider or "", offer.gpu, offer.gpu_count or 1,
      offer.gpu_memory_bytes or 0)
    local group = by_key[key]
    if not group then
      group = { gpu = offer.gpu, gpu_count = offer.gpu_count or 1, gpu_memory_bytes = offer.gpu_memory_bytes,
        provider = offer.provider, spot_network_gbps = offer.network_gbps, dates = {} }
      by_key[key], groups[#groups + 1] = group, group
    end
    local dates = offer.dates or {}
    local rate = rate_of(offer)
    local price = offer.dollars_per_hour or in_dollars(offer.price_per_hour, rate)
    local spot_price = in_dollars(offer.spot_price_per_hour, rate) or (offer.spot and price or nil)
    if offer.spot then price = nil end
    if cheaper(price, group.price_per_hour) then
      group.price_per_hour, group.region, group.billing = price, offer.region, billing_of(offer, rate)
      group.network_gbps, group.dates.on_demand = offer.network_gbps, dates.on_demand
      group.disk_price_per_gb_hour = in_dollars(offer.disk_price_per_gb_hour, rate)
    end
    if cheaper(spot_price, group.spot_price_per_hour) then
      group.spot_price_per_hour, group.spot_region, group.dates.spot = spot_price, offer.region, dates.spot
      group.spot_billing, group.spot_network_gbps = billing_of(offer, rate), offer.network_gbps
      group.spot_disk_price_per_gb_hour = in_dollars(offer.disk_price_per_gb_hour, rate)
    end
    for _, term in ipairs { "reserved_1y", "reserved_3y" } do
      local field = term .. "_price_per_hour"
      local reserved = in_dollars(offer[field], rate)
      if cheaper(reserved, group[field]) then group[field], group.dates[term] = reserved, dates[term] end
    end
  end
  for _, group in ipairs(groups) do
    group.list_price_of = listed.days(group.dates)
    group.region = group.region or group.spot_region
    group.network_gbps = group.network_gbps or group.spot_network_gbps
    if not group.price_per_hour then group.disk_price_per_gb_hour = group.spot_disk_price_per_gb_hour end
  end
  return groups
end

-- Splits a result of rille.offers into offers of machines with GPUs, one row per provider that failed, and notes on
-- omitted offers.
local function sort_out(list)
  local with_gpu, failed, seen, notes = {}, {}, {}, {}
  for _, offer in ipairs(list) do
    if offer.error ~= nil then
      local why = tostring(offer.error)
      local key = tostring(offer.provider) .. "|" .. why
      if not seen[key] then
        seen[key], failed[#failed + 1] = true, { provider = offer.provider, why = why, error = offer.kind or "unknown",
          hint = offer.hint }
      end
    elseif offer.note ~= nil then
      notes[#notes + 1] = { "offers", tostring(offer.provider), tostring(offer.note) }
    elseif offer.gpu and offer.gpu ~= "" and offer.gpu_count ~= 0 then
      with_gpu[#with_gpu + 1] = offer
    end
  end
  return with_gpu, failed, notes
end

-- Lists the currencies of offers whose price in dollars is unknown, "CNY, EUR"; nil if there are none.
local function foreign(list)
  local names = {}
  for _, offer in ipairs(list) do
    if not rate_of(offer) and not offer.dollars_per_hour and not names[offer.currency] then
      names[offer.currency], names[#names + 1] = true, offer.currency
    end
  end
  table.sort(names)
  return #names > 0 and table.concat(names, ", ") or nil
end

-- Adds a note on currencies without a rate; returns why prices in those currencies count as unknown, or nil.
local function note_rates(with_gpu, notes)
  local currencies = foreign(with_gpu)
  if not currencies then return nil end
  local why = ("prices in %s count as unknown: say rates = { %s = dollars } in the query, or in the providers' " ..
    "settings"):format(currencies, currencies:match("^[^,]+"))
  notes[#notes + 1] = { "rates", "unknown", why }
  return why
end

local function has_price(groups)
  for _, group in ipairs(groups) do
    if group.price_per_hour or group.spot_price_per_hour then return true end
  end
  return false
end

-- Whether `given` is a list of offers rather than a query. A result of rille.offers is a list even when empty.
local function is_list(given) return #given > 0 or next(given) == nil and getmetatable(given) ~= nil end

local offers = { ask = ask, is_list = is_list }
local answer  -- what answers a query in place of rille.offers; nil: nothing does

-- `rille estimate` replaces rille.offers, as it has no run that could journal the answer. nil: rille.offers again.
function offers.answer_by(of) answer = of end

-- The query without one of its providers; nil: it names no other.
local function without(query, name)
  local list = type(query.providers) == "table" and query.providers or {}
  local out, rest = {}, {}
  for key, value in pairs(query) do out[key] = value end
  for _, other in ipairs(list) do if other ~= name then rest[#rest + 1] = other end end
  out.providers = rest
  return query.provider == nil and #rest > 0 and #rest < #list and out or nil
end

-- Answers a query with live offers. A provider that is not set up counts as one that failed, so that its list prices
-- can stand in.
local function live(query)
  local missing = {}
  while query do
    local done, found = pcall(answer or rille.offers, query)
    if not done and (type(found) ~= "table" or found.code ~= "not_set_up") then error(found, 0) end
    if done then
      local out = {}
      for i, offer in ipairs(found) do out[i] = offer end
      for _, row in ipairs(missing) do out[#out + 1] = row end
      return out
    end
    missing[#missing + 1] = { provider = found.resource, error = found.message, kind = found.kind, hint = found.hint }
    query = without(query, found.resource)
  end
  return missing
end

local price_fields = { "price_per_hour", "spot_price_per_hour", "reserved_1y_price_per_hour",
  "reserved_3y_price_per_hour", "dates", "list_price_of" }

-- Gives a machine without a live price the list price of its provider for as many of these GPUs. Returns whether the
-- list has one.
local function fill(group, rows)
  local facts = native.gpu_facts(group.gpu, group.gpu_memory_bytes)
  for _, row in ipairs(rows) do
    if facts and row.provider == group.provider and row.gpu_count == group.gpu_count
      and native.gpu_facts(row.gpu).name == facts.name then
      for _, field in ipairs(price_fields) do group[field] = row[field] end
      return true
    end
  end
  return false
end

local function only_here(groups)
  for _, group in ipairs(groups) do if group.provider ~= "local" then return false end end
  return true
end

-- Adds what the list of prices has where no live price is known: to the machines without one; the list's machines if
-- there are none, or only this machine. Returns the machines, and why no live price is known, or nil.
local function with_listed(query, groups, failed, unpriced)
  local priced = has_price(groups)
  local rows = merge(ask(query, listed.of))
  if only_here(groups) then
    if #groups == 0 and #rows > 0 then unpriced = select(2, nothing.why(query, failed)) .. ": list prices instead" end
    for _, row in ipairs(rows) do groups[#groups + 1] = row end
    return groups, unpriced
  end
  local filled = false
  for _, group in ipairs(groups) do
    if not group.price_per_hour and not group.spot_price_per_hour then filled = fill(group, rows) or filled end
  end
  if filled and not priced then unpriced = "no offer has a live price in dollars: list prices instead" end
  return groups, unpriced
end

local function note_listed(groups, notes, unpriced)
  local dates = {}
  for _, group in ipairs(groups) do
    for _, day in pairs(group.list_price_of and group.dates or {}) do dates[#dates + 1] = day end
  end
  local days = listed.days(dates)
  if days then
    notes[#notes + 1] = { "offers", "list price of " .. days, unpriced or "of machines without a live price: " ..
      "`rille offers --list` shows these prices" }
  end
  return days
end

-- Returns the offers of a query, or the given list, as a list, and the query, or nil.
local function found_for(given)
  if given ~= nil and type(given) ~= "table" then
    read.invalid(("offers = %s; a query or a list is needed"):format(tostring(given)), "offers = { gpu = \"A100\" }")
  end
  if given and is_list(given) then
    for i, offer in ipairs(given) do check(offer, i) end
    return given, nil
  end
  local query = given or {}
  nothing.check(query)
  return ask(query, live), query
end

-- Returns a table: groups, the kinds of machines, each with `facts`; skipped, the skipped kinds, and why some are
-- missing (failed providers, unknown GPUs); notes for the assumptions { name, value, why }; unpriced, why no machine
-- has a live price, or nil; list_price_of, the dates of the list prices among them, or nil.
function offers.gather(given)
  local list, query = found_for(given)
  local with_gpu, skipped, notes = sort_out(list)
  local groups, found = merge(with_gpu), {}
  local unpriced = note_rates(with_gpu, notes)
  if has_price(groups) then unpriced = nil end
  if query then groups, unpriced = with_listed(query, groups, #skipped, unpriced) end
  local days = note_listed(groups, notes, unpriced)
  if #groups == 0 then
    groups, unpriced = nothing.instead(query, #skipped)
    notes[#notes + 1] = { "offers", "none", unpriced }
  end
  for _, group in ipairs(groups) do
    group.facts = native.gpu_facts(group.gpu, group.gpu_memory_bytes)
    if group.facts then found[#found + 1] = group
    else skipped[#skipped + 1] = { gpu = group.gpu, gpu_count = group.gpu_count, provider = group.provider,
      why = "nothing is known of this GPU: see rille.gpus()" } end
  end
  return { groups = found, skipped = skipped, notes = notes, unpriced = unpriced, list_price_of = days }
end

return offers
