-- rille.autoscale: keeps a cluster as large as its work needs. The policy is in policy.lua; this file reads metrics,
-- records decisions and acts on them. Each decision is a step in the run's record; added and removed instances are
-- ordinary leases.
local native = require "rille.native"
local rille = require "rille"
local members = require "rille.cluster.members"
local policy = require "rille.autoscale.policy"
local flow = native.flow

local autoscale = {}

local setups_max = 3  -- after this many failing setups in a row the autoscaler gives up

local known = { "metric", "above", "below", "target", "band", "step", "cooldown_out", "cooldown_in", "min", "max",
  "interval", "window", "schedule", "name" }

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

local function number(options, key, low, otherwise)
  local value = options[key]
  if value == nil then return otherwise end
  if type(value) ~= "number" or not (value >= low) then
    invalid(("rille.autoscale: %s = %s: a number from %g on is needed"):format(key, tostring(value), low))
  end
  return value
end

local function whole(options, key, otherwise)
  local value = number(options, key, 1, otherwise)
  if value and (value % 1 ~= 0 or value > 1000) then
    invalid(("rille.autoscale: %s = %s: a whole number from 1 to 1000 is needed"):format(key, tostring(value)))
  end
  return value
end

local function seconds(options, key, otherwise)
  if options[key] == nil then return otherwise end
  return flow.seconds(options[key], "rille.autoscale: " .. key)
end

-- Parses a time of day in UTC, "08:30", into seconds since midnight.
local function time_of_day(text, key)
  local hour, minute = tostring(text):match("^(%d%d?):(%d%d)$")
  hour, minute = tonumber(hour), tonumber(minute)
  if not hour or hour > 24 or minute > 59 or hour * 60 + minute > 1440 then
    invalid(("rille.autoscale: schedule: %s = %s: a time of day is needed"):format(key, tostring(text)),
      'as in { from = "08:00", to = "20:00", min = 4 }, in UTC')
  end
  return hour * 3600 + minute * 60
end

local function schedule(list, p)
  if list == nil then return nil end
  if type(list) ~= "table" then invalid("rille.autoscale: schedule: expected a list, got " .. tostring(list)) end
  local out = {}
  for i, entry in ipairs(list) do
    native.check_options(entry, "rille.autoscale: schedule", { "from", "to", "min", "max" })
    local low, high = whole(entry, "min", nil), whole(entry, "max", nil)
    if (low or p.min) > (high or p.max) then
      invalid(("rille.autoscale: schedule: min = %d is more than max = %d"):format(low or p.min, high or p.max))
    end
    out[i] = { from = time_of_day(entry.from, "from"), to = time_of_day(entry.to, "to"), min = low, max = high }
  end
  return out
end

-- Checks the options; returns the policy with all defaults and with durations in seconds.
local function read(cluster, options)
  if type(cluster) ~= "table" or not rawget(cluster, "_members") then
    invalid("rille.autoscale: expected a cluster first, got " .. tostring(cluster),
      'rille.autoscale(rille.cluster("gang", { .. }), { above = 0.8, below = 0.3, max = 8 })')
  end
  native.check_options(options, "rille.autoscale", known)
  if type(options) ~= "table" then invalid("rille.autoscale: expected a table with the policy") end
  local p = { metric = options.metric or "utilization", name = options.name or cluster.name .. " scale" }
  if type(p.metric) ~= "function" and p.metric ~= "utilization" and p.metric ~= "queue" then
    invalid("rille.autoscale: metric = " .. tostring(p.metric) .. " is not known",
      'metric = "utilization", "queue", or a function of the cluster that gives a number')
  end
  p.above, p.below, p.target = number(options, "above", 0), number(options, "below", 0), number(options, "target", 0)
  if p.target and (p.above or p.below) then
    invalid("rille.autoscale: target cannot be combined with above and below", "target = 0.6 holds the metric near 0.6")
  end
  if not p.target and not p.above and not p.below then p.above, p.below = 0.8, 0.3 end
  if p.target and options.step ~= nil then
    invalid("rille.autoscale: step cannot be combined with target",
      "a target determines the number of instances: leave step out")
  end
  for _, key in ipairs { "above", "below", "target" } do
    if p.metric == "utilization" and p[key] and p[key] > 1 then
      invalid(("rille.autoscale: %s = %g: utilization is between 0 and 1"):format(key, p[key]), key .. " = 0.8 is 80 %")
    end
  end
  if p.target == 0 then invalid("rille.autoscale: target = 0: it must be above 0") end
  if p.above and p.below and p.below >= p.above then
    invalid(("rille.autoscale: below = %g is not less than above = %g"):format(p.below, p.above))
  end
  p.band, p.step = number(options, "band", 0, 0.1), whole(options, "step", 1)
  p.min, p.max = whole(options, "min", 1), whole(options, "max", nil)
  if not p.max then invalid("rille.autoscale: max is missing: how many instances there may be at most", "max = 8") end
  if p.min > p.max then invalid(("rille.autoscale: min = %d is more than max = %d"):format(p.min, p.max)) end
  p.cooldown_out, p.cooldown_in = seconds(options, "cooldown_out", 300), seconds(options, "cooldown_in", 600)
  p.interval, p.window = seconds(options, "interval", 30), seconds(options, "window", 0)
  if p.interval <= 0 then invalid("rille.autoscale: interval = 0: it must be above 0") end
  p.schedule = schedule(options.schedule, p)
  return p
end

-- The mean utilization over the instances that answered; nil if none answered. If some did not answer, returns {
-- value =, least =, most = } as described in policy.lua.
local function utilization(cluster)
  local ids = {}
  for i, box in ipairs(cluster:boxes()) do ids[i] = box.id end
  local sum, n = 0, 0
  for _, reading in ipairs(flow.telemetry(ids)) do
    if type(reading.utilization) == "number" then sum, n = sum + reading.utilization, n + 1 end
  end
  if n == 0 then return nil end
  if n == #ids then return sum / n end
  return { value = sum / n, least = sum / #ids, most = (sum + #ids - n) / #ids }
end

local function value_of(cluster, p)
  if p.metric == "utilization" then return utilization(cluster) end
  if p.metric == "queue" then return cluster.waiting / math.max(1, cluster.count) end
  local value = p.metric(cluster)
  if value ~= nil and type(value) ~= "number" then
    invalid("rille.autoscale: the metric gave " .. tostring(value) .. ", not a number or nil")
  end
  return value
end

-- At the first reading: warns that an instance's ttl ends before long.
local function tell_end(cluster, p, left_s)
  rille.log(("%s: an instance ends %.3g h from now, by its ttl. One that ends while this works is replaced as min " ..
    "wants, and an item on it begins again on another: a ttl longer than the work avoids that"):format(p.name,
    left_s / 3600), { cluster = cluster.name })
end

-- Records a reading and the decision as one step. If a lease is over, or another call has changed the count
-- (`moved`), the reading describes a cluster of another size, so only the bounds min and max apply.
local function decide(cluster, p, state, count, value, moved)
  return rille.step(p.name, function()
    local now, gone = rille.now(), members.over(cluster)
    local left = count - (gone and #gone or 0)
    local decision = policy.decide(p, state, left, now, not (gone or moved) and value or nil,
      policy.short_lived(p, gone))
    local wanted, why, calling = decision.wanted, decision.why, nil
    if moved and wanted == left then why = "others have changed the count" end
    if wanted < left then
      calling = members.calling(cluster)
      wanted = math.max(wanted, calling and #calling or 0)
      if wanted == left then why = "calls run on all" end
    end
    return { at = now, from = count, to = wanted, value = value, mean = decision.mean, why = why, over = gone,
      calling = calling, left_s = not state.looked and members.shortest(cluster) or nil }
  end)
end

-- Grows or shrinks the cluster to seen.to. Returns how many growths in a row have failed because of a setup, and
-- whether this growth failed; raises the setup's error after `setups_max` failures in a row.
local function act(cluster, left, seen, failures)
  rille.log(("%s: %d -> %d instances (%s)"):format(cluster.name, left, seen.to, seen.why), seen)
  local failed, setup = flow.resize(cluster, seen.to, members.set_of(seen.calling))
  if not failed then return 0, false end
  rille.log(("%s: the resize was not completed: %s"):format(cluster.name, type(failed) == "table" and failed.message
    or tostring(failed)), { count = cluster.count })
  if not setup or cluster.count > left then return 0, seen.to > left end
  if failures + 1 >= setups_max then error(failed, 0) end
  return failures + 1, true
end

local function look(cluster, p, state)
  local before, value = cluster.count, value_of(cluster, p)
  local count = cluster.count  -- reading the count again: reading a metric may wait for a machine to boot
  local moved = count ~= before or (state.count or count) ~= count
  local seen = decide(cluster, p, state, count, value, moved)
  local same = cluster.count == count
  if seen.left_s then tell_end(cluster, p, seen.left_s) end
  members.retire(cluster, seen.over)
  local left, at, failures, failed = count - #(seen.over or {}), seen.at, state.failures, nil
  if same and seen.to ~= left then
    failures, failed = act(cluster, left, seen, failures or 0)
    at = rille.now()  -- a growth may take minutes: the cool-down starts when the growth ends
  end
  if policy.short_lived(p, seen.over) then failed = true end
  local out = policy.after(p, state, count, at, seen.value, { wanted = seen.to,
    changed = seen.over ~= nil or moved or not same, failed = failed, failures = failures })
  out.count = cluster.count
  return out
end

-- Reads, decides and acts until the cluster is released. While this runs, jobs may wait for an instance to be added.
local function follow(cluster, p)
  cluster._scaling = cluster._scaling + 1
  local ok, err = xpcall(function()
    local state = { readings = {} }
    while not cluster.released do
      state = look(cluster, p, state)
      rille.sleep(p.name, p.interval)
    end
  end, flow.trace)
  cluster._scaling = cluster._scaling - 1
  members.ring(cluster, "its autoscaler has ended")
  if not ok then error(err, 0) end
end

---@class rille.autoscale.Options
---@field metric? string|function "utilization" (the default): of the GPUs, or of the processors without GPUs,
---from 0 to 1, the mean of the cluster; "queue": waiting items of `cluster:map` per instance; or a function of the
---cluster that returns a number, or nil if there is none
---@field above? number add while the metric is above this, 0.8 by default
---@field below? number remove while it is below this, 0.3 by default
---@field target? number instead of both: hold the metric near this
---@field band? number relative tolerance around the target, 0.1 by default
---@field step? integer how many are added or removed at a time, 1 by default; not with a target
---@field cooldown_out? string|number how long after a change none is added, 300 seconds by default
---@field cooldown_in? string|number how long after a change none is removed, 600 seconds by default
---@field min? integer never fewer, 1 by default
---@field max integer never more
---@field interval? string|number time between readings, 30 seconds by default
---@field window? string|number use the mean of the readings over this time; by default the last one alone
---@field schedule? table other bounds at times of day (UTC): { { from = "08:00", to = "20:00", min = 4 }, .. }
---@field name? string of its steps in the record; the cluster's name and "scale" by default

---Adds instances to a cluster while its metric is high, and removes some while it is low, until the present scope's
---body ends. `rille.autoscale(cluster, options)` is the same.
---
---Each reading is a step of the run. The autoscaler continues wherever the run does: `rille watch` resumes a run whose
---process died.
---@param cluster Cluster from `rille.cluster`
---@param options rille.autoscale.Options the policy
---@return Fiber handle `handle:cancel()` ends it earlier
---@mark durable
---@async
---@error invalid an unknown option, contradictory bounds, not a cluster
---@error denied as `rille.rent`
---@example
---rille.autoscale(gang, { above = 0.8, below = 0.3, cooldown_out = 300, cooldown_in = 600, min = 1, max = 8 })
function autoscale.run(cluster, options)
  local p = read(cluster, options)
  local handle = rille.spawn(p.name, function() follow(cluster, p) end)
  flow.background(handle)
  table.insert(rawget(cluster, "_scalers"), handle)
  return handle
end

return setmetatable(autoscale, { __call = function(_, cluster, options) return autoscale.run(cluster, options) end })
