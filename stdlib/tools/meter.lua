-- Internal: measures the speed of a training loop, as the median over its steps. For rille.train and rille.measure; the
-- calling run stores the reports in its home (runtime/workflow/engine/measuring.hpp).
local native = require "rille.native"
local rille = require "rille"

local skipped = 5      -- the first steps compile, capture, and try algorithms
local least = 20       -- steps for a median
local kept = 500       -- latest steps in the median
local pause = 30       -- seconds between two reports: a step only reads the clock

local Meter = {}
Meter.__index = Meter

local meter = { skipped = skipped, least = least }

-- options: workload, unit, model, precision. clock: in seconds, native.clock by default.
function meter.new(options, clock)
  return setmetatable({ options = options, clock = clock or native.clock, rates = {}, seen = 0, count = 0, told = 0 },
    Meter)
end

-- Data sets and averages raise on unknown names, so they are recognized by their fields.
function meter.is_module(value)
  if type(value) ~= "table" or rawget(value, "_set") ~= nil or rawget(value, "_averages") ~= nil then return false end
  return getmetatable(value) ~= nil and type(value.parameters) == "function"
    and type(value.count) == "function"
end

-- Starts timing a step after other work.
function Meter:begin() self.at = self.clock() end

-- A step of so many tokens or samples has ended, and the next begins. Returns whether there is a new report.
function Meter:step(items)
  local now = self.clock()
  self.seen, self.items = self.seen + 1, items
  if self.at and self.seen > skipped then
    self.rates[self.count % kept + 1] = items / math.max(now - self.at, 1e-9)
    self.count = self.count + 1
  end
  self.at = now
  if self.count < least or (self.count > least and now - self.told < pause) then return false end
  self:sum_up()
  return true
end

local function median_of(list, n)
  local sorted = {}
  for i = 1, n do sorted[i] = list[i] end
  table.sort(sorted)
  local middle = math.floor((n + 1) / 2)
  return n % 2 == 1 and sorted[middle] or (sorted[middle] + sorted[middle + 1]) / 2
end

-- { workload =, rate =, unit =, steps =, batch =, params =, precision =, device = }; nil after too few steps.
function Meter:sum_up()
  if self.count < least or (self.report and self.report.steps == self.count) then return self.report end
  local o = self.options
  if o.model and not self.params then self.params = o.model:count() end
  local first = o.model and o.model:parameters()[1]
  self.told = self.at
  self.report = { workload = o.workload, unit = o.unit or "tokens", steps = self.count, batch = self.items,
    rate = median_of(self.rates, math.min(self.count, kept)), params = self.params,
    precision = o.precision or native.autocast_used or (first and first.tensor.dtype) or nil,
    device = rille.device().kind }
  return self.report
end

return meter
