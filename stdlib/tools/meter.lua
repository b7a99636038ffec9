-- Internal: measures the speed of a training loop, as the median over the loop's steps. rille.train and rille.measure
-- use it; the run that called stores the reports in its home (runtime/workflow/engine/measuring.hpp).
local native = require "rille.native"
local rille = require "rille"

local skipped = 5      -- the first steps are not measured: they compile, capture, and try algorithms
local least = 20       -- steps needed for a median
local kept = 500       -- the median is over the latest steps, at most this many
local pause = 30       -- seconds between two reports: a step without a report only reads the clock

local Meter = {}
Meter.__index = Meter

local meter = { skipped = skipped, least = least }

-- options: workload, unit, model, precision. clock: returns seconds; native.clock if nil.
function meter.new(options, clock)
  return setmetatable({ options = options, clock = clock or native.clock, rates = {}, seen = 0, count = 0, told = 0 },
    Meter)
end

-- Whether the value is a model. Data sets and averages raise on unknown names, so their own fields are checked first.
function meter.is_module(value)
  if type(value) ~= "table" or rawget(value, "_set") ~= nil or rawget(value, "_averages") ~= nil then return false end
  return getmetatable(value) ~= nil and type(value.parameters) == "function"
    and type(value.count) == "function"
end

-- Starts the timing of a step; call it after work that is not part of a step.
function Meter:begin() self.at = self.clock() end

-- Ends a step of `items` tokens or samples and begins the next. Returns whether there is a new report.
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

-- Returns { workload =, rate =, unit =, steps =, batch =, params =, precision =, device = }; nil after too few steps.
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
