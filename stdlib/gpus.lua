-- rille.gpus: manufacturers' data of GPUs: rates, memory, bandwidth, power, and a rough price, each with its source.
local native = require "rille.native"
local rille = require "rille"
local aligned = require "rille.tools.aligned"

local precisions = { "fp32", "tf32", "fp16", "bf16", "fp8", "int8" }

local function number(n, unit) return n and n > 0 and ("%.4g%s"):format(n, unit) or "-" end

local function print_list(list)
  local rows = { { "GPU", "ARCHITECTURE", "SM", "MEMORY", "BANDWIDTH" } }
  for _, name in ipairs(precisions) do table.insert(rows[1], name:upper()) end
  for _, name in ipairs { "NVLINK", "POWER", "YEAR", "ROUGHLY" } do table.insert(rows[1], name) end
  for _, f in ipairs(list) do
    local row = { f.confirmed and f.name or f.name .. " ?", f.architecture, tostring(f.capability),
      number(f.memory_bytes / 1e9, " GB"), number(f.bytes_per_s / 1e9, " GB/s") }
    for _, name in ipairs(precisions) do row[#row + 1] = number(f.flops[name] and f.flops[name] / 1e12, "") end
    row[#row + 1] = number(f.nvlink_bytes_per_s / 1e9, " GB/s")
    row[#row + 1] = number(f.power_w, " W")
    row[#row + 1] = tostring(f.year)
    row[#row + 1] = f.rough_price > 0 and ("$%d"):format(f.rough_price) or "-"
    rows[#rows + 1] = row
  end
  return aligned(rows, 2) ..
    "\nRates are dense, in TFLOP/s or TOPS. A '?' is not confirmed by the maker's own document."
end

local List = { __tostring = print_list, __metatable = "List" }
local function print_one(f) return print_list { f } .. "\nsource: " .. f.source end
local Facts = { __tostring = print_one, __metatable = "Facts" }

---@class rille.gpus.Facts
---@field name string "A100 80GB SXM"
---@field model string "A100 80GB", as in offers
---@field socket string "SXM", "PCIe", "NVL", or ""
---@field architecture string "Ampere"
---@field capability integer the compute capability: 80 is sm_80
---@field memory_bytes number as sold: 80 GB are 80e9
---@field bytes_per_s number the bandwidth of its memory
---@field flops table dense operations per second by precision: fp32, tf32, fp16, bf16, fp8, int8; nil if unsupported
---@field nvlink_bytes_per_s number both directions together; 0 without NVLink
---@field power_w number watts
---@field year integer of its release
---@field rough_price number dollars for one, roughly, as of 2025; 0 if it is not sold alone
---@field source string the document with the rates
---@field confirmed boolean false if the rates are from the press or extrapolated

---Manufacturers' data of GPUs: a table to rank and estimate with, not a measurement. With a name, the facts of that
---GPU; without, a list of all, which prints as a table.
---@param name? string in any spelling: "A100", "NVIDIA A100-SXM4-80GB", "4090"
---@return rille.gpus.Facts|rille.gpus.Facts[] facts of one GPU, or the list
---@mark deterministic
---@error invalid there is no such GPU in the table
---@example
---print(rille.gpus())
---print(rille.gpus("A100").flops.bf16 / 1e12)
local function gpus(name)
  if name == nil then return setmetatable(native.gpu_facts(), List) end
  local facts, near = native.gpu_facts(name)
  if facts then return setmetatable(facts, Facts) end
  rille.error { kind = "invalid", message = ("rille.gpus: nothing is known of a GPU '%s'"):format(tostring(name)),
    hint = near ~= "" and ("did you mean '%s'?"):format(near) or "print(rille.gpus()) lists those that are known" }
end

return gpus
