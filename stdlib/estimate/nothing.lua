-- Internal: what to estimate when neither an offer nor a list price of a GPU was found: the GPU that the query names,
-- by its manufacturer's data; else nothing, and the reason.
local native = require "rille.native"
local read = require "rille.estimate.read"

local nothing = {}

-- Fields of an offers query that never exclude an offer.
local no_filter = { rank = true, rates = true, tokens_per_second = true, workload = true, estimated = true,
  timeout = true }

local function text_of(value)
  if type(value) == "string" then return ('"%s"'):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, item in ipairs(value) do parts[i] = text_of(item) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

nothing.text = text_of

local function is_any(gpu)
  if type(gpu) == "table" then return #gpu == 0 or #gpu == 1 and is_any(gpu[1]) end
  return gpu == nil or type(gpu) == "string" and gpu:lower() == "any"
end

-- Returns the query's fields that exclude offers as text, 'gpu = "H100", max_price = 1', and their number.
local function filter_of(query)
  local names = {}
  for key, value in pairs(query) do
    local none = no_filter[key] or key == "gpu" and is_any(value) or type(value) == "table" and next(value) == nil
    if not none then names[#names + 1] = key end
  end
  table.sort(names, function(a, b)
    if (a == "gpu") ~= (b == "gpu") then return a == "gpu" end
    return a < b
  end)
  local parts = {}
  for i, key in ipairs(names) do parts[i] = ("%s = %s"):format(key, text_of(query[key])) end
  return table.concat(parts, ", "), #parts
end

-- Splits "A100-80GB:8" into name and count. A name without a count has the query's gpu_count.
local function named(query)
  local out = {}
  if is_any(query.gpu) then return out end
  local several = type(query.gpu) == "table" and #query.gpu > 1
  for i, gpu in ipairs(type(query.gpu) == "table" and query.gpu or { query.gpu }) do
    local name, own = gpu:match("^(.+):(%d+)$")
    local all = query.count and query.count > 0 and query.count or nil
    own = tonumber(own)
    out[i] = { name = name or gpu, count = several and (own or all) or all or own }
  end
  return out
end

-- Machines to estimate for a GPU: with `count` GPUs; without a count, one GPU, and also eight if the GPU has fast
-- NVLink.
local function rows_of(facts, count)
  local rows = { { gpu = facts.name, gpu_count = count or 1 } }
  if not count and facts.nvlink_bytes_per_s >= 300e9 then rows[2] = { gpu = facts.name, gpu_count = 8 } end
  return rows
end

-- Refuses a query for CPUs before any provider is asked, because an estimate supports GPUs only.
function nothing.check(query)
  if type(query.gpu) == "string" and query.gpu:lower() == "cpu" then
    read.invalid('gpu = "cpu"; an estimate supports GPUs only', 'gpu = "A100", or none')
  end
end

-- Returns why no offer was found, and the same with where to look further. failed: how many providers failed.
function nothing.why(query, failed)
  local failures = failed > 0 and (", and %d of the providers failed"):format(failed) or ""
  local filter, fields = filter_of(query)
  local see = failed > 0 and ", see result.skipped" or ""
  if fields == 0 then
    local why = failed == 0 and "no provider offers a GPU" or "no offer of a GPU" .. failures
    return why, why .. see
  end
  local why = ("no offer of a GPU passes %s%s"):format(filter, failures)
  local near = fields > (#named(query) > 0 and 1 or 0)
    and " (`rille offers` with the same says what comes nearest)" or ""
  return why, why .. see .. near
end

-- Returns the machines to estimate, and in words why they have no price. query: nil if the user gave a list of
-- offers.
function nothing.instead(query, failed)
  if not query then
    return {}, "the offers given have no GPU" .. (failed > 0 and (", and %d of the providers failed"):format(failed)
      or "")
  end
  local why, further = nothing.why(query, failed)
  local wanted, rows = named(query), {}
  for _, gpu in ipairs(wanted) do
    local facts, near = native.gpu_facts(gpu.name)
    if not facts then
      read.invalid(("%s; and nothing is known of a GPU '%s'"):format(why, gpu.name), near ~= "" and
        ("did you mean '%s'?"):format(near) or "print(rille.gpus()) lists those that are known")
    end
    for _, row in ipairs(rows_of(facts, gpu.count)) do rows[#rows + 1] = row end
  end
  if #wanted == 0 then return {}, further end
  return rows, further .. (#wanted > 1 and ": these GPUs by their makers'" or ": this GPU by its maker's") ..
    " data, without a price"
end

return nothing
