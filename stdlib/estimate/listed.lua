-- Internal: list prices for an estimate, as offers: what providers publish, with a date, where no live price is known.
local native = require "rille.native"

local listed = {}

-- Makes of a listed machine what rille.offers returns of an offer: on demand with its reserved prices, or spot. `dates`
-- says of which day each price is.
local function as_offer(row, spot)
  local out = { provider = row.provider, id = row.id, region = row.region, gpu = row.gpu, gpu_count = row.gpu_count,
    gpu_memory_bytes = row.gpu_memory_bytes, spot = spot, dates = {} }
  for _, kind in ipairs(spot and { "spot" } or { "on_demand", "reserved_1y", "reserved_3y" }) do
    out.dates[kind] = row.list_prices[kind] and row.list_prices[kind].date
  end
  if spot then out.price_per_hour = row.spot_price_per_hour return out end
  for _, name in ipairs { "price_per_hour", "reserved_1y_price_per_hour", "reserved_3y_price_per_hour" } do
    out[name] = row[name]
  end
  return out
end

-- The list's answer to a query with `spot`, in place of rille.offers.
function listed.of(query)
  local out = {}
  for i, row in ipairs(native.list_prices(query)) do out[i] = as_offer(row, query.spot) end
  return out
end

-- "2026-10-10", or "2025-03-06 to 2026-10-10", of dates by kind of price; nil: there is none.
function listed.days(dates)
  local first, last
  for _, day in pairs(dates or {}) do
    first = (not first or day < first) and day or first
    last = (not last or day > last) and day or last
  end
  return first and (first == last and first or first .. " to " .. last)
end

return listed
