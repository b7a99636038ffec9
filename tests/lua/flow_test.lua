-- run: ephemeral
local rille = require "rille"
local tap = require "tap"

tap.test("spawn gives a handle whose wait returns all results", function()
  local h = rille.spawn("child", function() rille.sleep("1ms") return 1, nil, 3 end)
  tap.equal({ h:wait() }, { 1, nil, 3 })
  tap.equal({ h:wait() }, { 1, nil, 3 })
  tap.equal(tostring(h), "Fiber 'child'")
  tap.raises("invalid", "did you mean 'wait'", function() return h:wiat() end)
  tap.raises("invalid", "the name comes first", rille.spawn, function() end)
end)

tap.test("results of a child may be anything", function()
  local f = rille.spawn("child", function() return function() return 5 end end):wait()
  tap.equal(f(), 5)
end)

tap.test("an error in a child reaches the waiting fiber unchanged", function()
  local err = tap.raises(nil, "mine", rille.scope, function()
    rille.spawn("bad", function() rille.error { kind = "quota", message = "mine", resource = "gpu" } end):wait()
  end)
  tap.equal({ err.kind, err.resource }, { "quota", "gpu" })
end)

tap.test("an error in a child cancels its siblings and the scope", function()
  local reached, cleaned = false, false
  tap.raises("io", "disk", rille.scope, function()
    rille.spawn("slow", function()
      rille.defer(function() cleaned = true end)
      rille.sleep("1h")
      reached = true
    end)
    rille.spawn("bad", function() rille.sleep("1ms") rille.error { kind = "io", message = "disk" } end)
    rille.sleep("1h")
    reached = true
  end)
  tap.ok(not reached and cleaned)
end)

tap.test("all gives results under the same keys", function()
  local function late() rille.sleep("3ms") return 1 end
  tap.equal(rille.all { late, function() return 2 end, x = function() return 3 end }, { 1, 2, x = 3 })
  tap.equal(rille.all {}, {})
  tap.raises("invalid", "entry 1 is 5", rille.all, { 5 })
end)

tap.test("race gives the first and its key, and cancels the others", function()
  local cleaned
  local value, key = rille.race {
    slow = function() rille.defer(function() cleaned = true end) rille.sleep("1h") end,
    fast = function() rille.sleep("1ms") return "won" end,
  }
  tap.equal({ value, key, cleaned }, { "won", "fast", true })
end)

tap.test("map keeps the order and its limit", function()
  local running, most = 0, 0
  local out = rille.map("squares", { 1, 2, 3, 4, 5 }, { limit = 2 }, function(x, i)
    running = running + 1
    most = math.max(most, running)
    rille.sleep(("%dms"):format(6 - x))
    running = running - 1
    return x * x + i
  end)
  tap.equal(out, { 2, 6, 12, 20, 30 })
  tap.equal(most, 2)
  tap.raises("invalid", "did you mean 'limit'", rille.map, "m", {}, { limti = 2 }, function() end)
  tap.equal(rille.map("named", { { id = "a" } }, { key = "id" }, function(x) return x.id end), { "a" })
end)

tap.test("a handle can be cancelled", function()
  local h = rille.spawn("sleeper", function() rille.sleep("1h") end)
  rille.sleep("1ms")
  h:cancel("no longer needed")
  tap.raises("cancelled", "no longer needed", function() h:wait() end)
  tap.equal(h:done(), true)
end)

tap.test("defers run last in, first out, on success and on error", function()
  local order = {}
  rille.scope(function()
    rille.defer(function() order[#order + 1] = "a" end)
    rille.defer(function() rille.sleep("1ms") order[#order + 1] = "b" end)
  end)
  tap.raises(nil, "oops", rille.scope, function()
    rille.defer(function() order[#order + 1] = "c" end)
    error("oops")
  end)
  tap.equal(order, { "b", "a", "c" })
  tap.raises(nil, "in defer", rille.scope, function() rille.defer(function() error("in defer") end) end)
end)

tap.test("errdefers run in one order with defers, and only when the scope fails", function()
  local function ends(body)
    local order = {}
    local function note(name) return function() rille.sleep("1ms") order[#order + 1] = name end end
    pcall(rille.scope, function()
      rille.defer(note "a")
      rille.errdefer(note "b")
      rille.defer(note "c")
      rille.errdefer(note "d")
      body(order)
    end)
    return table.concat(order)
  end
  tap.equal(ends(function() end), "ca")
  tap.equal(ends(function() error("oops") end), "dcba")
  tap.equal(ends(function() rille.spawn("child", function() error("in a child") end) end), "dcba")
  -- A defer that fails makes the scope fail: for what was deferred before it.
  tap.equal(ends(function() rille.defer(function() error("in a defer") end) rille.errdefer(error) end), "dcba")
  local undone = 0
  local h = rille.spawn("cancelled", function()
    rille.errdefer(function() rille.sleep("1ms") undone = undone + 1 end)
    rille.sleep("1h")
  end)
  rille.sleep("1ms")
  h:cancel()
  pcall(function() h:wait() end)
  tap.equal(undone, 1)
  tap.equal(ends(function()
    pcall(rille.step, "s", function() rille.errdefer(function() end) end)
  end), "ca")
  tap.raises("state", "errdefer", rille.step, "s", function() rille.errdefer(function() end) end)
  tap.raises("invalid", "rille.errdefer: expected a function", rille.errdefer, 1)
end)

tap.test("scope returns what its body returns, and waits for its children", function()
  local done
  tap.equal({ rille.scope("s", function()
    rille.spawn("c", function() rille.sleep("2ms") done = true end)
    return 1, 2
  end) }, { 1, 2 })
  tap.ok(done)
end)

tap.test("cancellation cannot be swallowed, and cleanup may wait", function()
  local loops, cleaned = 0, false
  local h = rille.spawn("stubborn", function()
    rille.defer(function() rille.sleep("1ms") cleaned = true end)
    while true do
      loops = loops + 1
      pcall(rille.sleep, "1h")
    end
  end)
  rille.sleep("1ms")
  h:cancel()
  tap.raises("cancelled", "cancelled by", function() h:wait() end)
  tap.ok(cleaned and loops >= 1 and loops < 1000, "an end to it after 100 waits that were refused")
end)

tap.test("sleep and now check their arguments", function()
  tap.raises("invalid", "rille.sleep", rille.sleep, "soon")
  tap.ok(rille.now() > 1e9)
end)

tap.test("args are typed by their defaults", function()
  local a = rille.args { count = 1, name = "y", on = false, list = { 0 }, other = 5 }
  tap.equal(a, { count = 12, name = "x", on = true, list = { 1, 2, 3 }, other = 5 })
  tap.raises("invalid", "takes no argument --count", rille.args, { name = "", on = true, list = {}, cuont = 2 })
  tap.raises("invalid", "--name x: expected a number", rille.args, { count = 1, name = 3, on = true, list = {} })
end)

tap.test("texts of errors have an end", function()
  local long = ("x"):rep(1e6)
  local _, e = pcall(rille.error, { message = long, hint = long })
  tap.ok(#tostring(e.message) < 70000 and e.message:find("1000000 bytes", 1, true), #e.message)
  tap.ok(#e.hint < 70000, #e.hint)
end)

tap.test("errors can be made, joined and passed on", function()
  local ok, e = pcall(rille.error, { kind = "timeout", message = "late", hint = "wait longer", retryable = true })
  tap.ok(not ok)
  tap.equal(tostring(e), "timeout: late\n  hint: wait longer")
  tap.equal("because " .. e, "because timeout: late\n  hint: wait longer")
  local ok2, e2 = pcall(rille.error, { message = "outer", cause = e })
  tap.equal({ ok2, e2.cause.kind, e2.kind }, { false, "timeout", "invalid" })
  tap.raises("invalid", "is not a kind of error", rille.error, { kind = "silly", message = "x" })
  tap.raises("invalid", "did you mean 'message'", rille.error, { mesage = "x" })
end)

tap.test("unknown words of rille are errors", function()
  tap.raises("invalid", "did you mean 'spawn'", function() return rille.spwan end)
  tap.raises("state", "cannot be changed", function() rille.x = 1 end)
end)

tap.test("effects are open on agents", function()
  tap.ok(io.open("/dev/null"))
  tap.ok(os.time() > 1e9)
end)

tap.test("modules: text only, found beside the script, not in circles", function()
  tap.equal(require "tap", tap)
  tap.raises("invalid", "there is no module 'tpa'", require, "tpa")
  tap.raises("invalid", "is not a module name", require, "../x")
  tap.raises("io", "directory", dofile, ".")
  tap.equal(loadstring("return 3")(), 3)
end)

tap.test("fibers do not nest without end", function()
  local depth = 0
  local function nest()
    depth = depth + 1
    rille.spawn("nest", nest):wait()
  end
  tap.raises("state", "nested too deeply", rille.scope, nest)
  tap.ok(depth > 500, depth)
end)

tap.test("a fiber that ends with children pending waits for them", function()
  local order = {}
  rille.spawn("outer", function()
    rille.spawn("inner", function() rille.sleep("2ms") order[#order + 1] = "inner" end)
    order[#order + 1] = "outer"
  end):wait()
  tap.equal(order, { "outer", "inner" })
end)

tap.test("a coroutine that waits is resumed by its fiber alone", function()
  local inner, main
  local victim = rille.spawn("victim", function()
    main = coroutine.running()
    inner = coroutine.create(function()
      rille.sleep("5ms")
      coroutine.yield("yielded")
      return "end"
    end)
    return { coroutine.resume(inner) }
  end)
  rille.sleep("1ms")
  for _, co in ipairs { inner, main } do
    local ok, why = coroutine.resume(co, "stolen")
    tap.equal({ ok, why }, { false, "cannot resume a coroutine that waits in a fiber" })
  end
  tap.equal(victim:wait(), { true, "yielded" })
  tap.equal({ coroutine.resume(inner) }, { true, "end" }) -- it waits for nothing: any fiber may go on with it
end)

tap.test("a coroutine does not yield out of a scope or a step", function()
  local what = "inside of a scope or a step that its coroutine is in"
  tap.raises("state", what, coroutine.wrap(function() rille.scope("s", coroutine.yield) end))
  tap.raises("state", what, coroutine.wrap(function()
    rille.step("s", { retry = 1 }, function() coroutine.yield() end)
  end))
  local numbers = coroutine.wrap(function() rille.scope("s", function() end) coroutine.yield(7) end)
  tap.equal(numbers(), 7)
  local step = rille.step("generator", function()
    return coroutine.wrap(function() coroutine.yield(8) end)()
  end)
  tap.equal(step, 8)
end)

tap.done()
