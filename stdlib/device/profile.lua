-- Internal: dev:profile(fn), documented in meta/device.lua: the time of operations, by operation and shape. Also
-- formats the cost table of a compiled function's plan.
local native = require "rille.native"
local rille = require "rille"
local aligned = require "rille.tools.aligned"

local Profile = {}
Profile.__index = Profile

local units = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } }

local function amount(n, unit)
  for _, u in ipairs(units) do
    if n >= u[1] then return ("%.1f %s%s"):format(n / u[1], u[2], unit) end
  end
  return ("%d %s"):format(n, unit)
end

local function cells_of(row, total)
  local cells = { row.name, row.shape, tostring(row.calls), amount(row.bytes, "B"),
    row.flops > 0 and amount(row.flops, "FLOP") or "" }
  if total then
    local ms = row.ms or 0
    local rates = ms > 0
    table.insert(cells, 3, ("%.1f %%"):format(total > 0 and 100 * ms / total or 0))
    table.insert(cells, 3, ("%.3f"):format(ms))
    cells[#cells + 1] = rates and ("%.1f"):format(row.bytes / ms * 1e-6) or ""
    cells[#cells + 1] = rates and row.flops > 0 and ("%.1f"):format(row.flops / ms * 1e-6) or ""
  end
  return cells
end

local function table_of(rows, most, total)
  local head = { "operation", "shape", "calls", "bytes", "compute" }
  if total then head = { "operation", "shape", "ms", "share", "calls", "bytes", "compute", "GB/s", "GFLOP/s" } end
  local shown, rest = { head }, { name = "others", calls = 0, bytes = 0, flops = 0, ms = 0 }
  for i, row in ipairs(rows) do
    if i <= most then
      shown[#shown + 1] = cells_of(row, total)
    else
      for _, key in ipairs { "calls", "bytes", "flops" } do rest[key] = rest[key] + row[key] end
      rest.ms = rest.ms + (row.ms or 0)
    end
  end
  if #rows > most then
    rest.shape = ("%d more rows"):format(#rows - most)
    shown[#shown + 1] = cells_of(rest, total)
  end
  return aligned(shown, 2)
end

-- Rows for kernels and copies, named as in the device's records. Bytes and FLOPs are known for copies, and for
-- kernels that alone make up an operation.
local function kernels_of(rows, most)
  local total = 0
  for _, row in ipairs(rows) do total = total + row.ms end
  local shown = { { "kernel", "of", "ms", "share", "calls", "mean us", "GB/s", "GFLOP/s" } }
  for i = 1, math.min(#rows, most) do
    local row = rows[i]
    local function rate(amount) return amount and row.ms > 0 and ("%.1f"):format(amount / row.ms * 1e-6) or "" end
    shown[i + 1] = { row.name, row.operations, ("%.3f"):format(row.ms),
      ("%.1f %%"):format(total > 0 and 100 * row.ms / total or 0), tostring(row.calls),
      ("%.1f"):format(row.ms * 1e3 / row.calls), rate(row.bytes), rate(row.flops) }
  end
  if #rows > most then shown[#shown + 1] = { "others", ("%d more rows"):format(#rows - most) } end
  return aligned(shown, 2)
end

-- Lists the operations that NVIDIA's libraries declined, one per line; "" if there are none.
local function fallbacks_of(list)
  if not list then return "" end
  local lines = { "\nSlower kernels ran on this device where a library, or the kernels for tensor cores, declined:" }
  for _, f in ipairs(list) do
    lines[#lines + 1] = ("  %s, %s, %d times: %s"):format(f.library, f.operation, f.calls, f.why)
  end
  return table.concat(lines, "\n")
end

local how = { clock = "by the clock", cupti = "by the device's records (CUPTI)" }

Profile.__tostring = function(self)
  local by = how[self.timed_by] or ("by events around each operation, which waits: %s"):format(self.why)
  local text = ("%.3f ms in operations, %.3f ms in all, timed %s\n%s"):format(self.busy_ms, self.ms, by,
    table_of(self.rows, 20, self.busy_ms))
  local declined = fallbacks_of(self.fallbacks)
  if not self.kernels or #self.kernels == 0 then return text .. declined end
  return text .. "\n\n" .. kernels_of(self.kernels, 20) .. declined
end

local function settle(dev, began, ok, ...)
  local report = native.profile_stop(dev)
  if not ok then error((...), 0) end
  local ms, busy = (native.clock() - began) * 1e3, 0
  for _, row in ipairs(report.rows) do
    row.ms = row.ms or 0
    busy = busy + row.ms
  end
  report.ms, report.busy_ms = ms, busy
  return setmetatable(report, Profile), ...
end

---Calls fn and returns the time of each operation in it.
local function profile(dev, fn)
  if type(fn) ~= "function" and not (getmetatable(fn) or {}).__call then
    rille.error { kind = "invalid", message = "dev:profile: expected a function, got " .. tostring(fn),
      hint = "dev:profile(function() return update(x, y) end)" }
  end
  native.profile_start(dev)
  return settle(dev, native.clock(), xpcall(fn, native.trace))
end

return { profile = profile, table_of = table_of, amount = amount, fallbacks_of = fallbacks_of }
