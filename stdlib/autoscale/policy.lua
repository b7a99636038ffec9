-- Internal: how many instances a cluster should have. Pure functions of a policy, the readings and the time. The
-- autoscaler records each decision, so a resumed run takes recorded decisions from the journal.
--
-- A reading's value is a number, or { value =, least =, most = } if some instances could not be read. value: the mean
-- of the instances that were read; least, most: the mean of all if the missing instances were idle, or fully used.
--
-- A state is { changed = when the count last changed (seconds), readings = { { at =, value = }, .. }, looked = true
-- after the first reading, failed = when a growth last fell short, failures = number of growths in a row that failed
-- because of a setup, count = the count after the last reading }.
local policy = {}

local day = 86400

-- Returns min and max of the count at this time of day (UTC); the first entry of the schedule that matches applies.
function policy.bounds(p, now)
  local time = now % day
  for _, entry in ipairs(p.schedule or {}) do
    local inside
    if entry.from <= entry.to then inside = time >= entry.from and time < entry.to
    else inside = time >= entry.from or time < entry.to end
    if inside then return entry.min or p.min, entry.max or p.max end
  end
  return p.min, p.max
end

local function number_of(value, which) return type(value) == "table" and value[which] or value end

-- The mean of the readings in the window that were taken since the count last changed, including the newest, `value`.
-- which: the field of a reading to use, "value", "least" or "most".
function policy.mean(p, state, now, value, which)
  which = which or "value"
  local sum, n = number_of(value, which), 1
  for _, reading in ipairs(state.readings) do
    local counts = reading.at > now - p.window and (not state.changed or reading.at > state.changed)
    if counts then sum, n = sum + number_of(reading.value, which), n + 1 end
  end
  return sum / n
end

local function is_reading(value)
  local n = number_of(value, "value")
  return type(n) == "number" and n == n and math.abs(n) ~= math.huge
end

local function target_count(p, count, mean)
  local ratio = mean / p.target
  if math.abs(ratio - 1) <= p.band then return count end
  return math.max(1, math.ceil(count * ratio - 1e-9))
end

local function step_count(p, count, mean)
  if p.above and mean > p.above then return count + p.step end
  if p.below and mean < p.below then return count - p.step end
  return count
end

-- The count that the readings suggest. Unread instances argue against a change: they count as idle when an instance
-- would be added, and as fully used when one would be removed.
local function asked_for(p, state, count, now, value)
  local function wanted_at(which)
    local mean = policy.mean(p, state, now, value, which)
    return p.target and target_count(p, count, mean) or step_count(p, count, mean), mean
  end
  local wanted, mean = wanted_at("value")
  if wanted > count then return math.max(count, (wanted_at("least"))), mean, wanted end
  if wanted < count then return math.min(count, (wanted_at("most"))), mean, wanted end
  return wanted, mean, wanted
end

-- Returns the wanted count and the reason in words. `value`: the newest reading; nil: only the bounds apply. The
-- bounds ignore cool-downs, because the user has set them. But after a failed growth, or if an instance ended soon
-- after it was rented (`short_lived`), wait for a cool-down: otherwise each reading would rent, and pay, again.
function policy.decide(p, state, count, now, value, short_lived)
  local low, high = policy.bounds(p, now)
  if count < low then
    if short_lived or state.failed and now - state.failed < p.cooldown_out then
      return { wanted = count, why = "cools down after a " .. (short_lived and "loss" or "failure") }
    end
    return { wanted = low, why = ("fewer than %d"):format(low) }
  end
  if count > high then return { wanted = high, why = ("more than %d"):format(high) } end
  if not is_reading(value) then return { wanted = count, why = "no reading" } end
  local wanted, mean, plainly = asked_for(p, state, count, now, value)
  local bounded = math.min(math.max(wanted, low), high)
  local function stay(why) return { wanted = count, mean = mean, why = why } end
  if wanted == count then return stay(plainly == count and "steady" or "readings are missing") end
  if bounded == count then return stay(wanted > count and "at the maximum" or "at the minimum") end
  local pause = bounded > count and p.cooldown_out or p.cooldown_in
  if state.changed and now - state.changed < pause then return stay("cools down") end
  local limit = p.target and ("target %g"):format(p.target) or
    bounded > count and ("above %g"):format(p.above) or ("below %g"):format(p.below)
  return { wanted = bounded, mean = mean, why = limit }
end

-- Whether an instance in `gone`, the result of `members.over`, lived for less than a cool-down.
function policy.short_lived(p, gone)
  for _, one in ipairs(gone or {}) do if one.lived_s and one.lived_s < p.cooldown_out then return true end end
  return false
end

-- Returns the state after a decision, as a new table. decision.changed: something else has changed the count;
-- decision.failed: whether the growth fell short, nil: no growth was tried.
function policy.after(p, state, count, now, value, decision)
  local out = { changed = state.changed, readings = {}, looked = true, failures = decision.failures }
  if decision.failed == nil then out.failed = state.failed else out.failed = decision.failed and now or nil end
  if decision.changed or decision.wanted ~= count then
    out.changed = now
    return out
  end
  for _, reading in ipairs(state.readings) do
    if reading.at > now - p.window then out.readings[#out.readings + 1] = reading end
  end
  if is_reading(value) and p.window > 0 then
    out.readings[#out.readings + 1] = { at = now, value = value }
  end
  return out
end

return policy
