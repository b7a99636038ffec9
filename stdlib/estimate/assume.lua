-- Internal: the assumptions of rille.estimate. Each has a name, by which options.assume overrides it, a default, and
-- a reason; result.assumptions lists the assumptions that an estimate used.
local native = require "rille.native"
local aligned = require "rille.tools.aligned"
local read = require "rille.estimate.read"

-- Each row: name, default, type, meaning and source, and the mode that uses it: "training", "inference", or nil for
-- both.
local known = {
  { "utilization", nil, "share", "part of the GPU's dense rate that the program reaches; by default by model and GPU" },
  { "node_efficiency", nil, "share", "of GPUs in one machine with NVLink: 0.95, images 0.86 (NVIDIA's BERT and " ..
    "ResNet-50 on 8 GPUs)", "training" },
  { "cluster_efficiency", 0.95, "share", "of several machines, beside their network (NVIDIA's BERT on 32 nodes)",
    "training" },
  { "pcie_gb_per_s", 12, "count", "that GPUs of one machine without NVLink exchange; half of it hides behind the " ..
    "computing", "training" },
  { "network_gbps", nil, "count", "between machines: what the offer says; else 3200 where they have 8 GPUs with " ..
    "NVLink (RDMA), else 25; half of it hides", "training" },
  { "sharded_efficiency", 0.9, "share", "where one copy of the model is spread over several GPUs: a guess" },
  { "machines_max", 128, "whole", "the most machines that a plan may have" },
  { "headroom", 0.2, "share", "of the memory needed, added for fragments and libraries" },
  { "activation_bytes_per_flop", 0.007, "count", "of the forward pass over an image, in fp16: roughly", "training" },
  { "step_floor", "30ms", "seconds", "the least time of a training step: a pass forward, a pass back and the " ..
    "optimiser that launch each kernel, three times latency_floor; each micro_batch that is given counts as a step; " ..
    "a captured graph needs less", "training" },
  { "checkpoint_every", "15m", "seconds", "an interruption costs half of it", "training" },
  { "spot_restart", "10m", "seconds", "from an interruption to the next step", "training" },
  { "spot_interruptions_per_hour", 0.05, "least", "of each machine; sold-out models are interrupted more often" },
  { "spot_discount", nil, "share", "where no spot price is offered; none by default, and then no estimate" },
  { "reserved_1y_discount", 0.4, "share", "off the on-demand price, where the offer has no price of its own; billed " ..
    "whether used or not" },
  { "reserved_3y_discount", 0.6, "share", "the same for three years" },
  { "mix", nil, "mix", "shares of the hours: { spot = 0.7, on_demand = 0.3 }, for inference { reserved_1y = 0.6, " ..
    "on_demand = 0.2, spot = 0.2 }" },
  { "buy_years", 3, "count", "over which a purchase is written off, with nothing left" },
  { "buy_use", 0.5, "share", "part of these years that it is busy" },
  { "buy_host", 0.4, "least", "server, network and rack for each dollar of GPU: a guess" },
  { "buy_upkeep", 0.05, "least", "room and hands each year, of the purchase: a guess" },
  { "power_price", 0.12, "least", "dollars per kWh" },
  { "power_factor", 1.8, "least", "watts at the meter for each watt of GPU: host and cooling" },
  { "data_gb", nil, "least", "data in an object store; by default that of the usual data set, 0.1 MB an image, 4 " ..
    "bytes a token", "training" },
  { "storage_price", 0.023, "least", "dollars per GB and month in an object store", "training" },
  { "disk_gb", nil, "least", "disk of each machine; by default the data, three checkpoints and 50 GB" },
  { "disk_price", 0.1, "least", "dollars per GB and month of a machine's disk, where its offer tells none" },
  { "address_price", 0.005, "least", "dollars per hour of a machine's public address, which aws, azure and gcp " ..
    "charge for" },
  { "snapshots", 3, "least", "checkpoints kept, for a month after the end", "training" },
  { "snapshot_price", 0.05, "least", "dollars per GB and month", "training" },
  { "download_gb", nil, "least", "taken out of the cloud; by default the weights once, for inference 1 KB a request" },
  { "transfer_price", 0.09, "least", "dollars per GB out of the cloud; in is free" },
  { "bandwidth_efficiency", 0.6, "share", "part of the memory's bandwidth that generating text reaches", "inference" },
  { "latency_floor", "10ms", "seconds", "one pass of a program that launches each kernel (PyTorch: 13 ms on V100 " ..
    "and T4); a captured graph needs 1 to 2 ms", "inference" },
  { "load", 0.7, "share", "part of a replica's capacity that is used, so that queues stay short", "inference" },
  { "hours_per_month", 730, "count", "for which machines are kept", "inference" },
}

local assume = {}

local function read_mix(value, mode)
  if value == nil then
    return mode == "training" and { spot = 0.7, on_demand = 0.3 } or { reserved_1y = 0.6, on_demand = 0.2, spot = 0.2 }
  end
  native.check_options(value, "rille.estimate's mix", { "on_demand", "spot", "reserved_1y", "reserved_3y" })
  local sum = 0
  for name, share in pairs(value) do sum = sum + read.share("mix." .. name, share) end
  if math.abs(sum - 1) > 1e-6 then read.invalid(("the shares of mix add up to %g, not to 1"):format(sum)) end
  return value
end

local function read_one(kind, name, value, mode)
  if kind == "mix" then return read_mix(value, mode) end
  if value == nil then return nil end
  if kind == "least" then return read.count(name, value, 0) end
  return read[kind](name, value)
end

local function print_list(list)
  local rows = { { "ASSUMED", "VALUE", "" } }
  for _, a in ipairs(list) do rows[#rows + 1] = { (a.given and "* " or "  ") .. a.name, a.value, a.why } end
  return aligned(rows, 3)
end

local List = { __tostring = print_list, __metatable = "List" }

local function text_of(value)
  if type(value) ~= "table" then return value == nil and "-" or tostring(value) end
  local parts = {}
  for name, share in pairs(value) do parts[#parts + 1] = ("%s %g"):format(name, share) end
  return table.concat(parts, ", ")
end

-- Returns the assumed values by name, and the list for result.assumptions.
function assume.read(given, mode)
  local names, values, list = {}, {}, {}
  for i, row in ipairs(known) do names[i] = row[1] end
  native.check_options(given, "rille.estimate's assume", names)
  given = given or {}
  for _, row in ipairs(known) do
    local name, default, kind, why, only = row[1], row[2], row[3], row[4], row[5]
    local value = given[name]
    if value == nil then value = default end
    values[name] = read_one(kind, name, value, mode)
    if not only or only == mode then
      local shown = kind == "mix" and values[name] or value
      list[#list + 1] = { name = name, value = text_of(shown), given = given[name] ~= nil, why = why }
    end
  end
  return values, setmetatable(list, List)
end

-- The list of an estimate that rests on no assumption.
function assume.none() return setmetatable({}, List) end

-- Adds to the list a value that the estimate itself has determined.
function assume.note(list, name, value, why)
  list[#list + 1] = { name = name, value = tostring(value), given = false, why = why }
end

return assume
