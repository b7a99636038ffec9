-- run: durable
local rille = require "rille"
local tap = require "tap"

tap.test("a step gives the decoded copy of what it returns", function()
  local t = { 1, 2 }
  local out = rille.step("copy", function() return { list = t, n = 1 } end)
  tap.equal(out, { list = { 1, 2 }, n = 1 })
  tap.ok(out.list ~= t)
  tap.equal(rille.step("nothing", function() end), nil)
  tap.raises("invalid", "returns 2 values", rille.step, "two", function() return 1, 2 end)
  tap.raises("invalid", "the result of step 'f'.x is a function", rille.step, "f", function() return { x = print } end)
end)

tap.test("a step's failure is raised as it was recorded", function()
  local err = tap.raises("quota", "no more", rille.step, "fails",
    function() rille.error { kind = "quota", message = "no more" } end)
  tap.ok(err.traceback:find("durable_test.lua"))
  tap.raises("invalid", "durable_test.lua", rille.step, "plain", function() error("text") end)
end)

tap.test("a step is tried again", function()
  local seen = rille.step("retried", { retry = { attempts = 3, initial = "1ms" } }, function(attempt)
    if attempt < 3 then error("attempt " .. attempt) end
    return attempt
  end)
  tap.equal(seen, 3)
  tap.raises("invalid", "attempt 2", rille.step, "gives up", { retry = { attempts = 2, initial = "1ms" } },
    function(attempt) error("attempt " .. attempt) end)
  tap.raises("invalid", "did you mean 'retry'", rille.step, "x", { rerty = 3 }, function() end)
  tap.raises("invalid", "did you mean 'attempts'", rille.step, "x", { retry = { attemps = 3 } }, function() end)
  tap.raises("invalid", "expected a function", rille.step, "x", {})
  tap.raises("invalid", "expected its name first", rille.step, function() end)
end)

tap.test("a step's body gets its attempt and its ticket", function()
  local tokens = {}
  for i = 1, 2 do
    tokens[i] = rille.step("keyed", { effect = i == 1 and "pure" or "once" }, function(attempt, ctx)
      ctx:heartbeat { at = i }
      tap.equal({ attempt, ctx.attempt, ctx.last }, { 1, 1 })
      return ctx.token
    end)
  end
  tap.ok(tokens[1] ~= tokens[2] and #tokens[1] == 36)
  local last = rille.step("goes on", { retry = { initial = "1ms" } }, function(attempt, ctx)
    if attempt == 1 then ctx:heartbeat { part = 7 } error("down") end
    return { ctx.last.part, ctx.attempt }
  end)
  tap.equal(last, { 7, 2 })
  local plain = rille.step("without options", function(attempt, ctx)
    ctx:heartbeat(1)
    return { attempt, ctx.attempt, #ctx.token, ctx.token == ctx.token }
  end)
  tap.equal(plain, { 1, 1, 36, true })
  tap.equal(rille.step("plain", function(attempt, ctx) return ctx.last == nil and ctx.attempt end), 1)
  tap.raises("invalid", "did you mean 'heartbeat'", rille.step, "x", function(_, ctx) ctx:hartbeat(1) end)
  tap.raises("invalid", "is a function", rille.step, "y", function(_, ctx) ctx:heartbeat(print) end)
  tap.raises("invalid", "expected 'idempotent', 'pure', 'once' or 'tx'", rille.step, "x", { effect = "twice" }, print)
  tap.raises("invalid", "is never tried again", rille.step, "x", { effect = "once", retry = 2 }, print)
  tap.raises("invalid", "is used only with effect = 'once'", rille.step, "x", { probe = print }, print)
  tap.raises("network", "not now", rille.step, "once", { effect = "once" },
    function(attempt) rille.error { kind = "network", message = "not now " .. attempt, retryable = true } end)
end)

tap.test("a step's body has limits of time", function()
  local function timeout(options, pattern, body)
    local err = tap.raises("timeout", pattern, rille.step, "limited", options, body)
    tap.equal(err.code, "step_timeout")
  end
  local once = { attempts = 1 }
  timeout({ timeout = "20ms", retry = once }, "took longer than 20ms", function() rille.sleep("1h") end)
  timeout({ timeout = "20ms", retry = once }, "took longer than 20ms", function() while true do end end)
  timeout({ timeout = "20ms", effect = "once" }, "took longer than 20ms", function()
    while true do pcall(function() while true do end end) end
  end)
  timeout({ total_timeout = "20ms" }, "in all attempts together, than 20ms", function() rille.sleep("1h") end)
  timeout({ heartbeat_timeout = "20ms", retry = once }, "no heartbeat for 20ms", function() rille.sleep("1h") end)
  local attempts = rille.step("again", { timeout = "20ms", retry = { initial = "1ms" } }, function(attempt)
    if attempt < 3 then while true do end end
    return attempt
  end)
  tap.equal(attempts, 3)
  tap.raises("invalid", "expected 'error' or 'pause'", rille.step, "x", { retry = { on_exhausted = "stop" } }, print)
  tap.raises("invalid", "expected 0 to 1000", rille.step, "x", { crashes_max = -1 }, print)
  local both = { crashes_max = 1, effect = "pure" }
  tap.raises("invalid", "its crashes are not recorded", rille.step, "x", both, print)
  tap.raises("invalid", "a duration above zero", rille.step, "x", { timeout = 0 }, print)
end)

tap.test("a step whose effect is a transaction", function()
  local file = rille.step("file", function() return os.tmpname() end)
  rille.defer(function() rille.step("remove", function() os.remove(file) end) end)
  local tx = { effect = "tx", db = file }
  local function step(name, body) return rille.step(name, tx, function(_, ctx) return body(ctx.db) end) end
  step("make", function(db) db:exec "CREATE TABLE t(id INTEGER PRIMARY KEY, v); CREATE TABLE u(v)" end)
  tap.equal(step("put", function(db)
    return { db:exec("INSERT INTO t VALUES(?, ?), (2, ?)", 1, "one", nil),
      db:exec("INSERT INTO t VALUES(:id, :v)", { id = 3, v = 2.5 }), db:exec("UPDATE t SET v = 'x' WHERE id > 1") }
  end), { 2, 1, 2 })
  tap.equal(step("get", function(db) return db:query "SELECT * FROM t ORDER BY id" end),
    { { id = 1, v = "one" }, { id = 2, v = "x" }, { id = 3, v = "x" } })
  -- What fails leaves nothing, and is tried again from nothing.
  tap.equal(rille.step("again", { effect = "tx", db = file, retry = { initial = "1ms" } }, function(attempt, ctx)
    ctx.db:exec "INSERT INTO u VALUES(1)"
    if attempt < 3 then error("not yet") end
    return ctx.db:query("SELECT count(*) AS n FROM u")[1].n
  end), 1)
  tap.raises("invalid", "UNIQUE constraint failed", step, "twice", function(db)
    db:exec "INSERT INTO u VALUES(2)"
    db:exec "INSERT INTO t VALUES(1, 1)"
  end)
  -- An error that the body catches, and that has rolled back: nothing more happens.
  tap.raises("state", "is over", step, "goes on", function(db)
    pcall(db.exec, db, "INSERT OR ROLLBACK INTO t VALUES(1, 1)")
    pcall(db.exec, db, "INSERT INTO u VALUES(3)")
  end)
  tap.equal(step("rest", function(db) return db:query "SELECT v FROM u" end), { { v = 1 } })
  for _, sql in ipairs { "COMMIT", "ROLLBACK", "ATTACH 'x' AS x", "PRAGMA synchronous=OFF",
    "PRAGMA hard_heap_limit=10000" } do
    tap.raises("invalid", "not authorized", step, "own business", function(db) db:exec(sql) end)
  end
  tap.raises("invalid", "has 1 placeholders, but 2 values", step, "x", function(db) db:exec("SELECT ?", 1, 2) end)
  tap.raises("invalid", "only 0 of the 1 values", step, "x", function(db) db:exec("SELECT :a", { b = 2 }) end)
  tap.raises("invalid", "more than one statement", step, "x", function(db) db:exec("SELECT ?; SELECT 1", 1) end)
  tap.raises("invalid", "is a table", step, "x", function(db) db:exec("SELECT ?, ?", 1, {}) end)
  tap.raises("invalid", "syntax error", step, "x", function(db) db:exec "SELEKT" end)
  tap.raises("invalid", "is not a statement", step, "x", function(db) db:query " -- nothing" end)
  tap.raises("invalid", "beyond the exact integers", step, "x",
    function(db) return db:query "SELECT 9007199254740993 AS big" end)
  tap.equal(step("bytes", function(db)
    return db:query("SELECT typeof(?1) AS a, typeof(?2) AS b, ?2 AS back, ? AS yes", "text", "\255\0", true)[1]
  end), { a = "text", b = "blob", back = "\255\0", yes = 1 })
  -- Two at a time: the second waits for the first without holding up the others.
  rille.map("both", { 1, 2 }, function(i)
    rille.step("slow", tx, function(_, ctx) ctx.db:exec("INSERT INTO u VALUES(?)", 10 + i) rille.sleep("20ms") end)
  end)
  tap.equal(#step("both", function(db) return db:query "SELECT v FROM u WHERE v > 10" end), 2)
  local kept
  rille.step("keeps", tx, function(_, ctx) rawset(_G, "kept_db", ctx.db) end)
  tap.raises("state", "is over", function() rawget(_G, "kept_db"):exec "SELECT 1" end)
  tap.raises("invalid", "has no database", rille.step, "x", { args = 1 }, function(_, ctx) return ctx.db end)
  tap.raises("invalid", "but no database", rille.step, "x", { effect = "tx" }, print)
  tap.raises("invalid", "only with effect = 'tx'", rille.step, "x", { db = file }, print)
  tap.raises("io", "unable to open", rille.step, "x", { effect = "tx", db = "/nowhere/at/all.db" }, print)
  tap.raises("integrity", "not a database", rille.step, "x", { effect = "tx", db = "/etc/passwd" }, print)
  tap.raises("invalid", "at most 65536 are kept", step, "x", function() return ("x"):rep(70000) end)
end)

tap.test("a step's body leaves nothing behind", function()
  local n, list, deep = 0, {}, { inner = { a = 1 } }
  local function helper() n = n + 1 end
  tap.raises("state", "changes 'n'", rille.step, "assigns", function() n = 1 end)
  tap.raises("state", "changes the table 'list'", rille.step, "appends", function() table.insert(list, 1) end)
  tap.raises("state", "changes the table 'deep'", rille.step, "deep", function() deep.inner.a = 2 end)
  tap.raises("state", "changes 'n'", rille.step, "by a helper", function() helper() end)
  tap.raises("state", "sets the global 'leaked'", rille.step, "global", function() leaked = 1 end)
  -- Reading is fine, and so is a table that is restored.
  tap.equal(rille.step("reads", function() local x = deep.inner.a; list[9] = 1; list[9] = nil; return x end), 2)
end)

tap.test("the short way of a step is as the long one", function()
  tap.equal({ rille.step("f", function() return false end), rille.step("s", function() return "a\255b" end) },
    { false, "a\255b" })
  tap.equal(tostring(rille.step("-0", function() return -0.0 end)), "-0")
  tap.ok(rille.step("huge", function() return math.huge end) == math.huge)
  local function called_last() return rille.step("tail", function(attempt) return attempt end) end
  tap.equal(called_last(), 1)
  local generator = coroutine.wrap(function()
    coroutine.yield(rille.step("in a coroutine", function() return "x" end))
  end)
  tap.equal(generator(), "x")
  local a, b, c, d, e, f, g, h, i = 1, 2, 3, 4, 5, 6, 7, 8, "nine"
  local function sum() return a + b + c + d + e + f + g + h + #i end
  tap.equal(rille.step("nine captured", function() return sum() end), 40)
  tap.raises("state", "changes 'i'", rille.step, "the ninth", function()
    local n = a + b + c + d + e + f + g + h
    i = "ten"
    return n
  end)
  tap.raises("state", "changes 'h'", rille.step, "becomes a table", function() h = {} end)
  local seen = {}
  local ok = pcall(rille.step, "retryable", function(attempt)
    if attempt < 2 then rille.error { kind = "network", message = "again", retryable = true, retry_after = 0.001 } end
    return attempt
  end)
  tap.ok(ok)
  -- A table comes back as the journal's copy, also after others have been.
  local first = rille.step("one", function() return { 1 } end)
  local second = rille.step("two", function() return { 2 } end)
  tap.equal({ first, second, seen }, { { 1 }, { 2 }, {} })
end)

tap.test("a fiber that waits for a plain step's commit is cancelled at once", function()
  local reached, caught = 0, nil
  local loser = rille.spawn("loser", function()
    local ok, err = pcall(function()
      while true do rille.step("again", function() return 1 end) reached = reached + 1 end
    end)
    caught = err
    error(err, 0)
  end)
  rille.step("meanwhile", function() return 1 end)
  loser:cancel("enough")
  local ok = pcall(loser.wait, loser)
  tap.ok(not ok or caught)
  tap.equal(caught.kind, "cancelled")
end)

tap.test("inside a step effects work, and durable verbs do not", function()
  tap.equal(rille.step("io", function() return io.open("/dev/null") ~= nil and type(os.time()) end), "number")
  tap.raises("state", "rille.step was called inside the body of step 'outer'", rille.step, "outer",
    function() rille.step("inner", function() end) end)
  tap.raises("state", "rille.spawn was called inside the body", rille.step, "outer2",
    function() rille.spawn("c", function() end) end)
  tap.equal(rille.step("sleeps", function() rille.sleep("1ms") return rille.now() > 1e9 end), true)
  tap.raises("state", "io.open works only inside rille.step", function() return io.open("/dev/null") end)
  tap.raises("state", "rille.now()", function() return os.time() end)
end)

tap.test("randomness is the fiber's, whatever steps draw", function()
  math.randomseed(7)
  local a = { math.random(), math.random() }
  math.randomseed(7)
  local first = math.random()
  rille.step("draws", function() return math.random() end)
  tap.equal({ first, math.random() }, a)
end)

tap.test("leases belong to scopes", function()
  local id, kept
  rille.scope(function()
    local box = rille.rent("inner", { ttl = "1h" })
    id = box.id
    tap.equal({ box.name, box.provider, box.state }, { "inner", "local", "live" })
    tap.ok(tostring(box):find("Instance 'inner' (local", 1, true))
    tap.raises("invalid", "did you mean 'name'", function() return box.nmae end)
    tap.raises("invalid", "cannot be set", function() box.name = "x" end)
    kept = box
  end)
  tap.equal(kept.state, "released")
  local moved = rille.scope(function() return { box = rille.rent("moved") } end)
  tap.equal(moved.box.state, "live")
  moved.box:release()
  tap.equal(moved.box.state, "released")
  tap.raises("invalid", "did you mean spot", rille.rent, "bad", { spto = true })
end)

tap.test("offers print as a table", function()
  local offers = rille.offers {}
  tap.ok(#offers >= 1)
  tap.ok(tostring(offers):find("PROVIDER"))
  tap.ok(tostring(offers):find("local"))
  tap.ok(tostring(offers):find("PRICE PER HOUR"))
  tap.ok(offers[1].price_per_hour == 0 and offers[1].price_micros_per_hour == nil)
  offers[1] = { provider = "far", id = "x", price_per_hour = 70, currency = "CNY", dollars_per_hour = 9.8,
    price_per_tflop = 0.5, disk_bytes_max = 32e12 }
  offers[2] = { provider = "aws", region = "us-east-1", error = "no such key", kind = "auth", hint = "set one" }
  offers[3] = { provider = "aws", unpriced = 37, note = "37 further types fit" }
  local text = tostring(offers)
  tap.ok(text:find("70 CNY", 1, true) and not text:find("$70", 1, true))  -- a price is in its currency
  tap.ok(text:find("DISK MAX", 1, true) and text:find("32 TB", 1, true))
  tap.ok(text:find("$9.8", 1, true) and text:find("$0.5", 1, true))
  tap.ok(text:find("\naws, us-east-1: error (auth): no such key\n  hint: set one\naws: 37 further types fit", 1, true))
  tap.ok(not text:find("ERROR", 1, true) and not text:find("UNPRICED", 1, true))  -- none has a column
end)

tap.test("what cannot be called remotely is refused with its name", function()
  local box = rille.rent("caller")
  local count, co, other = 0, coroutine.create(function() end), box
  tap.raises("invalid", "uses 'other', which cannot be sent to an instance",
    function() box:call("c", function() return other.name end) end)
  tap.raises("invalid", "uses 'co', which cannot be sent to an instance",
    function() box:call("c", function() return co end) end)
  local err = tap.raises("invalid", "assigns 'count'", function() box:call("c", function() count = count + 1 end) end)
  tap.ok(err.message:find("durable_test.lua:%d+"))
  tap.raises("invalid", "assigns 'count'", function()
    box:call("c", function() local f = function() count = 5 end f() end)
  end)
  tap.raises("invalid", "did you mean 'args'", function() box:call("c", { arsg = {} }, function() end) end)
  tap.raises("invalid", "the function is missing", function() box:call("c", { args = {} }) end)
  tap.raises("invalid", "there is no module 'nosuch'", function() box:call("c", "nosuch") end)
  tap.raises("invalid", "argv must be a list of words", function() box:exec("e", { argv = {} }) end)
  tap.raises("invalid", "no option 'ports' yet", function() box:exec("e", { argv = { "x" }, ports = "y" }) end)
  tap.raises("invalid", "'-v/:/x' is not the name of an image",
    function() box:exec("e", { argv = { "x" }, container = "-v/:/x" }) end)
  tap.raises("invalid", "'a b' is not the name of an image",
    function() box:call("c", { container = "a b" }, function() end) end)
  tap.raises("invalid", "do not go together", function() box:stage("a", "b", { unpack = true, mirror = true }) end)
  tap.raises("invalid", "no option 'force' yet", function() box:stage("a", "b", { force = true }) end)
  tap.raises("invalid", "methods are called with a colon", function() box.stage("a", "b") end)
end)

tap.test("signals, budgets and names check their arguments", function()
  tap.equal(rille.signal("never", { timeout = "1ms", default = "none" }), "none")
  tap.raises("invalid", "did you mean 'limit'", rille.budget, { limt = 5 })
  rille.budget { limit = 5.0, alert = 0.8 }
  tap.raises("invalid", "alert = 8", rille.budget, { limit = 5.0, alert = 8 })
  tap.ok(#rille.run_id > 5)
  tap.ok(rille.home:find(rille.run_id, 1, true))
end)

tap.test("try_rent gives nil and the error when there is nothing", function()
  local box, err = rille.try_rent("h200", { gpu = "H200:8" })
  tap.equal(box, nil)
  tap.equal(err.kind, "capacity")
end)

tap.done()
