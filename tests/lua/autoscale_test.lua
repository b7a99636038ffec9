-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local policy = require "rille.autoscale.policy"

local function with(changes)
  local p = { above = 0.8, below = 0.3, step = 1, cooldown_out = 300, cooldown_in = 600, min = 1, max = 4, window = 0,
    band = 0.1 }
  for key, value in pairs(changes or {}) do p[key] = value end
  return p
end

-- The counts that a policy goes through: readings at the given interval, one after the other; false: there is none.
local function counts(p, count, interval, readings)
  local state, out = { readings = {} }, {}
  for i, value in ipairs(readings) do
    local now = (i - 1) * interval
    if value == false then value = nil end
    local decision = policy.decide(p, state, count, now, value)
    state = policy.after(p, state, count, now, value, decision)
    count = decision.wanted
    out[i] = count
  end
  return out
end

local function why(p, state, count, now, value) return policy.decide(p, state, count, now, value).why end

tap.test("above adds one, below removes one, between stays", function()
  local p, fresh = with(), { readings = {} }
  for _, row in ipairs { { 0.81, 3 }, { 0.8, 2 }, { 0.5, 2 }, { 0.3, 2 }, { 0.29, 1 }, { 0, 1 }, { 7, 3 } } do
    tap.equal(policy.decide(p, fresh, 2, 0, row[1]).wanted, row[2])
  end
  tap.equal(policy.decide(with { step = 2 }, fresh, 1, 0, 0.9).wanted, 3)
  tap.equal(policy.decide(with { step = 2 }, fresh, 3, 0, 0.9).wanted, 4)
  tap.equal(policy.decide(with { below = false }, fresh, 3, 0, 0.1).wanted, 3)
end)

tap.test("never beyond the bounds, whatever is read", function()
  local p, fresh = with(), { readings = {} }
  tap.equal(why(p, fresh, 4, 0, 1), "at the maximum")
  tap.equal(why(p, fresh, 1, 0, 0), "at the minimum")
  local hot = { changed = 0, readings = {} }
  tap.equal(policy.decide(with { min = 3 }, hot, 1, 1, nil).wanted, 3)
  tap.equal(policy.decide(with { max = 2 }, hot, 4, 1, 0.9).wanted, 2)
end)

tap.test("a change is followed by a pause: 300 s before one is added, 600 s before one is removed", function()
  tap.equal(counts(with(), 1, 100, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }), { 2, 2, 2, 3, 3, 3, 4, 4, 4, 4 })
  tap.equal(counts(with(), 4, 200, { 0, 0, 0, 0, 0, 0, 0, 0 }), { 3, 3, 3, 2, 2, 2, 1, 1 })
  tap.equal(counts(with(), 1, 300, { 1, 0, 0, 1, 0, 0, 0 }), { 2, 2, 1, 2, 2, 1, 1 })
  tap.equal(why(with(), { changed = 0, readings = {} }, 2, 299, 1), "cools down")
  tap.equal(policy.decide(with(), { changed = 0, readings = {} }, 2, 300, 1).wanted, 3)
  tap.equal(policy.decide(with(), { changed = 0, readings = {} }, 2, 599, 0).wanted, 2)
  tap.equal(policy.decide(with(), { changed = 0, readings = {} }, 2, 600, 0).wanted, 1)
end)

tap.test("bounds do not wait, but after a growth that fell short", function()
  local p = with { min = 3 }
  local short = policy.after(p, { readings = {} }, 1, 100, nil, { wanted = 3, failed = true })
  tap.equal(why(p, short, 1, 399, 1), "cools down after a failure")
  tap.equal(policy.decide(p, short, 1, 400, nil).wanted, 3)
  -- A look that changes nothing forgets nothing; a growth that succeeds does.
  tap.equal(why(p, policy.after(p, short, 1, 200, nil, { wanted = 1 }), 1, 399, 1), "cools down after a failure")
  local grown = policy.after(p, short, 1, 200, nil, { wanted = 3, failed = false })
  tap.equal(policy.decide(p, grown, 2, 201, nil).wanted, 3)
  tap.equal(why(p, policy.after(p, short, 2, 200, nil, { wanted = 1, changed = true }), 1, 399, 1),
    "cools down after a failure")
  tap.equal(policy.decide(p, short, 5, 101, nil).wanted, 4)
end)

tap.test("what is lost as soon as it comes is not rented again at every look", function()
  local p = with { min = 3 }
  tap.equal(policy.short_lived(p, nil), false)
  tap.equal(policy.short_lived(p, { { number = 1, why = "its ttl has passed" }, { number = 2, lived_s = 300 } }), false)
  local soon = policy.short_lived(p, { { number = 1, lived_s = 4000 }, { number = 2, lived_s = 20 } })
  tap.equal(soon, true)
  local d = policy.decide(p, { readings = {} }, 2, 100, nil, soon)
  tap.equal({ d.wanted, d.why }, { 2, "cools down after a loss" })
  local after = policy.after(p, { readings = {} }, 2, 100, nil, { wanted = 2, changed = true, failed = soon })
  tap.equal(policy.decide(p, after, 2, 399, nil).wanted, 2)
  tap.equal(policy.decide(p, after, 2, 400, nil).wanted, 3)
end)

tap.test("a reading that flaps moves the count no faster than the pauses allow", function()
  local readings, changes, last, before = {}, 0, nil, 2
  for i = 1, 600 do readings[i] = i % 2 == 0 and 1 or 0 end
  for i, count in ipairs(counts(with(), 2, 10, readings)) do
    if count ~= before then
      changes = changes + 1
      tap.ok(not last or (i - last) * 10 >= (count > before and 300 or 600), "too soon at " .. i)
      last, before = i, count
    end
    tap.ok(count >= 1 and count <= 4)
  end
  tap.ok(changes > 2)
  -- Over a window the flapping is a steady half.
  local calm = counts(with { window = 200 }, 2, 10, readings)
  tap.equal({ calm[1], calm[600] }, { 1, 1 })
end)

tap.test("without a reading nothing is decided", function()
  for _, value in ipairs { false, 0 / 0, math.huge } do
    tap.equal(why(with(), { readings = {} }, 2, 0, value or nil), "no reading")
  end
  tap.equal(counts(with { cooldown_out = 0 }, 1, 10, { false, 0.9, false, 0.9 }), { 1, 2, 2, 3 })
end)

tap.test("what could not be read speaks against a change", function()
  local fresh = { readings = {} }
  local function at(value, least, most, changes)
    local d = policy.decide(with(changes), fresh, 4, 0, { value = value, least = least, most = most })
    return { d.wanted, d.why, d.mean }
  end
  -- Two of four do nothing, and two hard-working ones do not answer: no reason to take one away.
  tap.equal(at(0, 0, 0.5), { 4, "readings are missing", 0 })
  tap.equal(at(0.1, 0.09, 0.2), { 3, "below 0.3", 0.1 })
  tap.equal(at(1, 0.5, 1, { max = 8 }), { 4, "readings are missing", 1 })
  tap.equal(at(1, 0.9, 1, { max = 8 }), { 5, "above 0.8", 1 })
  tap.equal(at(0.5, 0.25, 0.75), { 4, "steady", 0.5 })
  local held = { above = false, below = false, target = 0.5, max = 8 }
  tap.equal(at(1, 0.75, 1, held), { 6, "target 0.5", 1 })
  tap.equal(at(0.6, 0.3, 0.9, held), { 4, "readings are missing", 0.6 })  -- not a reason to remove one, either
  tap.equal(at(0.1, 0.05, 0.25, held), { 2, "target 0.5", 0.1 })
  -- Over a window each reading counts with what it lacked.
  local p = with { window = 60, cooldown_in = 0 }
  local state = { readings = { { at = 50, value = { value = 0, least = 0, most = 0.5 } } } }
  tap.equal(policy.mean(p, state, 60, 0.1, "most"), 0.3)
  tap.equal(policy.after(p, state, 4, 60, 0.1, { wanted = 4 }).readings[2].value, 0.1)
  tap.equal(#policy.after(p, state, 4, 60, 0 / 0, { wanted = 4 }).readings, 1)
end)

tap.test("a window: the mean of its readings since the last change", function()
  local p = with { window = 60, cooldown_out = 0 }
  tap.equal(counts(p, 1, 30, { 0.5, 1, 1, 1 }), { 1, 1, 2, 3 })
  local state = { changed = 50, readings = { { at = 40, value = 0 }, { at = 60, value = 1 } } }
  tap.equal(policy.mean(p, state, 90, 0.5), 0.75)
  tap.equal(policy.mean(p, { readings = { { at = 29, value = 0 } } }, 90, 0.5), 0.5)
end)

tap.test("a target is held: as many as bring the metric back to it, outside of a dead band", function()
  local p, fresh = with { above = false, below = false, target = 0.5, max = 20 }, { readings = {} }
  for _, row in ipairs { { 4, 0.5, 4 }, { 4, 0.54, 4 }, { 4, 0.46, 4 }, { 4, 0.6, 5 }, { 4, 1, 8 }, { 4, 0.3, 3 },
    { 4, 0.25, 2 }, { 4, 0, 1 }, { 10, 1, 20 }, { 15, 1, 20 }, { 3, 0.5000001, 3 } } do
    tap.equal(policy.decide(p, fresh, row[1], 0, row[2]).wanted, row[3])
  end
  tap.equal(policy.decide(p, { changed = 0, readings = {} }, 4, 100, 1).wanted, 4)
  tap.equal(policy.decide(p, { changed = 0, readings = {} }, 4, 400, 0.1).wanted, 4)
end)

tap.test("other bounds at times of day", function()
  local hour = 3600
  local p = with { schedule = { { from = 8 * hour, to = 20 * hour, min = 3 },
    { from = 22 * hour, to = 6 * hour, max = 1 } } }
  local fresh = { readings = {} }
  local function at(h, count) return policy.decide(p, fresh, count, (19000 * 24 + h) * hour, 0.5).wanted end
  tap.equal({ at(7.99, 1), at(8, 1), at(19.99, 1), at(20, 1) }, { 1, 3, 3, 1 })
  tap.equal({ at(21, 4), at(22, 4), at(1, 4), at(5.99, 2), at(6, 2) }, { 4, 1, 1, 1, 2 })
end)

tap.test("what cannot be meant is refused", function()
  local function refused(text, ...) tap.raises("invalid", text, rille.autoscale, ...) end
  refused("expected a cluster first", 5, { max = 2 })
  refused("expected a cluster first", {}, { max = 2 })
  tap.raises("invalid", "expected its name first", rille.cluster, { count = 2 })
  tap.raises("invalid", "count = 0", rille.cluster, "gang", { count = 0 })
  tap.raises("invalid", "setup: expected a function", rille.cluster, "gang", { setup = 5 })
  tap.raises("state", "cannot rent", rille.cluster, "gang", { count = 1 })
  local gang = { _members = {}, name = "gang" }
  refused("utilization is between 0 and 1", gang, { max = 2, above = 8 })
  refused("step cannot be combined with target", gang, { max = 2, target = 0.5, step = 2 })
end)

tap.done()
