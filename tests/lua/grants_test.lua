-- run: durable
-- Each function that reaches out of the Lua state asks for its grant: without it the call raises `denied`, whose code
-- is the grant's name; with it, it does not. What a function needs stands in grants_rows.lua.
local rille = require "rille"
local tap = require "tap"
local rows = require "grants_rows"
local native = require "rille.native"

-- No process can create a file below /proc/nowhere.
local given = '{"read":["/proc/nowhere"],"write":["/proc/nowhere","/tmp","/dev/stdout"],"env":["NOWHERE"],' ..
  '"process":true,"network":["127.0.0.1","example.org:443","me@example.org"],"kernels":true,"providers":["local"]}'
local tried = {}  -- function -> the grants that its calls have shown to be needed

local function name_of(err)
  return type(err) == "table" and ("%s %s"):format(err.kind, tostring(err.code)) or tostring(err)
end

-- once: only without the grant, as the call itself would need a machine.
local function row(name, grant, call, once)
  tap.ok(rows.needs[name] and rows.needs[name]:find(grant, 1, true), name .. ": no row with " .. grant)
  set_grants("{}")
  local fine, err = pcall(call)
  tap.equal(fine and "no error" or name_of(err), "denied " .. grant)
  tap.ok(err.message:find("needs the grant " .. grant .. " = ", 1, true), err.message)
  tried[name] = (tried[name] or "") .. " " .. grant
  if once then return end
  set_grants(given)
  fine, err = pcall(call)
  if not fine and type(err) == "table" then tap.ok(err.kind ~= "denied", name .. ": " .. tostring(err)) end
end

local count = 0
local function in_step(name, grant, body)
  row(name, grant, function()
    count = count + 1
    return rille.step("effect " .. count, { retry = 1 }, body)
  end)
end

tap.test("io", function()
  in_step("io.open", "read", function() return io.open("/proc/nowhere/x") and 1 end)
  in_step("io.open", "write", function() return io.open("/proc/nowhere/x", "w") and 1 end)
  in_step("io.open", "write", function() return io.open("/proc/nowhere/x", "a") and 1 end)
  in_step("io.open", "read", function() return io.open("/proc/nowhere/x", "r+") and 1 end)
  in_step("io.lines", "read", function() for _ in io.lines("/proc/nowhere/x") do end end)
  in_step("io.input", "read", function() io.input("/proc/nowhere/x") end)
  in_step("io.output", "write", function() io.output("/proc/nowhere/x") end)
  in_step("io.popen", "process", function() io.popen("true"):close() end)
  in_step("io.tmpfile", "write", function() io.tmpfile():close() end)
  in_step("io.write", "write", function() io.write("") end)
  in_step("io.flush", "write", function() io.flush() end)
  in_step("io.stdout", "write", function() io.stdout:write("") end)
  set_grants "{}"
  local function refused(name, grant, body)
    row(name, grant, function() rille.step("stream " .. name, { retry = 1 }, body) end, true)
  end
  refused("io.read", "read", function() io.read() end)
  refused("io.lines", "read", function() io.lines() end)
  refused("io.close", "write", function() io.close() end)
  refused("io.stdin", "read", function() io.stdin:read() end)
  refused("io.stderr", "write", function() io.stderr:write("x") end)
end)

tap.test("whole files", function()
  in_step("rille.read", "read", function() return rille.read("/proc/nowhere/x") end)
  in_step("rille.write", "write", function() rille.write("/proc/nowhere/x", "") end)
  in_step("rille.csv.read", "read", function() return rille.csv.read("/proc/nowhere/x") end)
  in_step("rille.csv.write", "write", function() rille.csv.write("/proc/nowhere/x", {}) end)
end)

tap.test("inspect and print need no grant", function()
  local tensor = rille.device("cpu"):tensor { 1.5 }
  set_grants "{}"
  tap.ok(rille.inspect(tensor):find("1.5"))
  print({ tensor })
end)

tap.test("a stream that the script has set needs no grant of the standard one", function()
  set_grants '{"write":["/tmp"],"read":["/tmp"]}'
  local text = rille.step("own streams", { retry = 1 }, function()
    local name = os.tmpname()
    io.output(name)
    io.write("words")
    io.close()
    io.input(name)
    local read = io.read("*a")
    os.remove(name)
    return read
  end)
  tap.equal(text, "words")
end)

tap.test("os", function()
  in_step("os.execute", "process", function() os.execute("true") end)
  in_step("os.getenv", "env", function() return os.getenv("NOWHERE") end)
  in_step("os.remove", "write", function() os.remove("/proc/nowhere/x") end)
  in_step("os.rename", "write", function() os.rename("/proc/nowhere/x", "/proc/nowhere/y") end)
  in_step("os.tmpname", "write", function() os.remove(os.tmpname()) end)
  set_grants '{"write":["/proc/nowhere"]}'
  tap.raises("denied", "/etc/y", rille.step, "away", { retry = 1 }, function()
    os.rename("/proc/nowhere/x", "/etc/y")
  end)
  tap.raises("denied", "/etc/x", rille.step, "into", { retry = 1 }, function()
    os.rename("/etc/x", "/proc/nowhere/y")
  end)
end)

tap.test("code", function()
  row("loadfile", "read", function() loadfile("/proc/nowhere/x.lua") end)
  row("dofile", "read", function() dofile("/proc/nowhere/x.lua") end)
  row("rille.run", "read", function() rille.run("/proc/nowhere/x.lua") end)
  set_grants "{}"
  tap.ok(type(loadfile("grants_rows.lua")) == "function")  -- beside the script
  tap.raises("denied", "read = ", loadfile, "../../CMakeLists.txt")
end)

tap.test("files of data", function()
  local dev = rille.device "cpu"
  local t = dev:zeros { 1 }
  row("rille.data.bytes", "read", function() rille.data.bytes("/proc/nowhere/x", { context = 8, batch = 1 }) end)
  row("rille.data.tokens", "read", function() rille.data.tokens("/proc/nowhere/x", { context = 8, batch = 1 }) end)
  row("rille.data.arrays", "read", function() rille.data.arrays("/proc/nowhere/x", { batch = 1 }) end)
  row("rille.data.images", "read", function() rille.data.images("/proc/nowhere/x", { batch = 1 }) end)
  row("rille.data.tokenizer", "read", function() rille.data.tokenizer("/proc/nowhere/x") end)
  row("rille.data.build", "read", function() rille.data.build { sources = "/proc/nowhere/x", to = "" } end)
  row("rille.data.build", "write", function() rille.data.build { sources = {}, to = "/proc/nowhere/y" } end)
  row("rille.data.load_tensors", "read", function() rille.data.load_tensors("/proc/nowhere/x.safetensors") end)
  row("rille.data.save_tensors", "write", function()
    rille.data.save_tensors("/proc/nowhere/x.safetensors", { t = t })
  end)
  row("rille.nn.gpt2", "read", function() rille.nn.gpt2 { layers = 1, heads = 1, width = 8, vocab = 8, context = 8,
    weights = "/proc/nowhere/x" } end)
  row("rille.nn.bert", "read", function() rille.nn.bert { layers = 1, heads = 1, width = 8, vocab = 8, context = 8,
    weights = "/proc/nowhere/x" } end)
  row("rille.nn.resnet", "read", function() rille.nn.resnet { depth = 18, width = 8, weights = "/proc/nowhere/x" } end)
  row("rille.nn.llama", "read", function() rille.nn.llama { layers = 1, heads = 1, kv_heads = 1, width = 8, hidden = 8,
    vocab = 8, context = 8, weights = "/proc/nowhere/x" } end)
end)

tap.test("checkpoints", function()
  local model = rille.nn.linear(1, 1)
  row("rille.checkpoint.begin", "write", function()
    rille.checkpoint.wait(rille.checkpoint.begin({ model }, { directory = "/proc/nowhere/c", step = 1 }))
  end)
  row("rille.checkpoint.save", "write", function()
    rille.checkpoint.save({ model }, { directory = "/proc/nowhere/c", step = 1 })
  end)
  row("rille.checkpoint.exists", "read", function() rille.checkpoint.exists("/proc/nowhere/c") end)
  row("rille.checkpoint.load", "read", function() rille.checkpoint.load({ model }, "/proc/nowhere/c") end)
  row("rille.train.run", "read", function()
    rille.train { update = function() return model:parameters()[1]:sum() end, steps = 1,
      data = { next = function() return rille.device("cpu"):zeros { 1 } end },
      checkpoint = { directory = "/proc/nowhere/c", every = 1, state = { model } } }
  end)
  local function in_store()
    rille.train { update = function() return model:parameters()[1]:sum() end, steps = 1,
      data = { next = function() return rille.device("cpu"):zeros { 1 } end },
      checkpoint = { state = { model }, store = "s3://bucket/?endpoint=http://127.0.0.1:1&region=x" } }
  end
  set_grants '{"network":["127.0.0.1:1"]}'
  tap.raises("denied", "providers = ", in_store)
  set_grants '{"providers":["aws"]}'
  tap.raises("denied", "network = ", in_store)
  tried["rille.train.run"] = " read write network providers"  -- it writes by rille.checkpoint.begin
end)

tap.test("kernels", function()
  local dev = rille.device "cpu"
  local source = "__global__ void k(float* x) { x[0] = 1; }"
  row("Device:kernel", "kernels", function() dev:kernel(source) end)
  row("Device:kernel_file", "kernels", function() dev:kernel_file("not_there.cu") end)  -- beside the script
  set_grants '{"kernels":true}'
  tap.raises("denied", "read = ", function() dev:kernel_file("/proc/nowhere/x.cu") end)
  tap.raises("denied", "read = ", function() dev:kernel { file = "/proc/nowhere/x.cu" } end)
  tried["Device:kernel"], tried["Device:kernel_file"] = " kernels read", " kernels read"
  row("Device:elementwise", "kernels", function() dev:elementwise("y = x + 1")(dev:zeros { 1 }) end)
  row("Device:reduction", "kernels", function() dev:reduction("x + 1")(dev:zeros { 1 }) end)
  set_grants '{"kernels":true}'
  local kernel = dev:kernel(source)
  row("Kernel:cubin", "kernels", function() kernel:cubin("sm_80") end)
  row("Kernel:ptx", "kernels", function() kernel:ptx("sm_80") end)
  row("Kernel:sass", "kernels", function() kernel:sass("sm_80") end)
end)

tap.test("the network", function()
  row("rille.communicator", "network", function()
    rille.communicator { rank = 1, world = 2, address = "127.0.0.1:1", timeout = "20ms" }
  end)
  row("rille.budget", "network", function() rille.budget { limit = 1, alert_url = "https://example.org/x" } end)
  row("rille.budget", "network", function() rille.budget { limit = 1, alert_url = "mailto:me@example.org" } end)
  row("rille.budget", "env", function() rille.budget { limit = 1, alert_url = "env:NOWHERE" } end)
  set_grants '{"network":["example.org:443"]}'
  rille.budget { limit = 1, alert_url = "https://EXAMPLE.org/x" }
  for _, url in ipairs { "https://example.org:444/x", "https://example.org@evil.org/x", "http://example.org/x",
    "https://evil.org/?example.org:443", "mailto:me@example.org", "mailto:me@example.org,you@evil.org" } do
    tap.raises("denied", "network = ", rille.budget, { limit = 1, alert_url = url })
  end
  set_grants '{"network":["127.0.0.1:1"]}'
  local alone = rille.communicator { rank = 0, world = 1 }
  row("Communicator:split", "network", function() native.ranks_listen(alone) end)
  set_grants "{}"
  tap.raises("denied", "network = ", native.ranks_group, alone, 1, 2, "10.0.0.1:22")
end)

tap.test("a database of a step", function()
  row("rille.step", "read", function()
    count = count + 1
    rille.step("tx " .. count, { effect = "tx", db = "/proc/nowhere/x.db", retry = 1 }, function() end)
  end)
  set_grants '{"read":["/proc/nowhere"]}'
  local tx = { effect = "tx", db = "/proc/nowhere/x.db" }
  tap.raises("denied", "write = ", rille.step, "read only", tx, function() end)
  tried["rille.step"] = " read write"
end)

tap.test("providers", function()
  local none = { gpu = "H100:99", provider = "local" }
  row("rille.offers", "providers", function() rille.offers(none) end)
  row("rille.price_history", "providers", function() rille.price_history { provider = "local" } end)
  row("rille.quotas", "providers", function() rille.quotas { provider = "local" } end)
  row("rille.estimate", "providers", function()
    rille.estimate { model = "gpt2", tokens = 1e6, offers = { gpu = "A100" } }
  end)
  row("rille.rent", "providers", function() rille.rent("none", none) end)
  row("rille.try_rent", "providers", function() rille.try_rent("none", none) end)
  local disk = { size = "1GB", provider = "local", keep = false }
  row("rille.volume", "providers", function() rille.volume("none", disk) end)
  row("rille.cluster", "providers", function()
    rille.cluster("none", { count = 1, gpu = "H100:99", provider = "local" })
  end)
  set_grants '{"providers":["local"]}'
  tap.raises("denied", "process = true", rille.rent, "none", none)
  tap.raises("denied", "process = true", rille.rent, "none", { gpu = "H100:99" })
  tap.raises("denied", "process = true", rille.volume, "none", disk)
  set_grants '{"providers":["aws"],"process":true}'
  tap.raises("denied", 'providers = "local"', rille.rent, "none", { providers = { "aws", "local" } })
  set_grants(given)
  for _, offer in ipairs(rille.offers {}) do tap.equal(offer.provider, "local") end  -- of those that are granted
  for _, name in ipairs { "rille.rent", "rille.try_rent", "rille.volume", "rille.cluster" } do
    tried[name] = " providers process"
  end
end)

tap.test("a machine", function()
  set_grants(given)
  local box = rille.rent("box", { provider = "local" })
  row("Instance:call", "process", function() box:call("c", function() end) end, true)
  row("Instance:exec", "process", function() box:exec("e", { argv = { "true" } }) end, true)
  row("Instance:stage", "process", function() box:stage("/proc/nowhere/x", "x") end, true)
  row("Instance:get", "process", function() box:get("x", "/proc/nowhere/x") end, true)
  row("Instance:replace", "providers", function() box:replace { provider = "local", gpu = "H100:99" } end, true)
  set_grants '{"process":true}'
  tap.raises("denied", "read = ", function() box:stage("/etc/passwd", "x") end)
  tap.raises("denied", "read = ", function() box:stage("file:///etc/passwd", "x") end)
  tap.raises("denied", "read = ", function() box:stage("/proc/nowhere/long/x://../../etc/passwd", "x") end)
  tap.raises("denied", "network = ", function() box:stage("http://127.0.0.1:1/x", "x") end)
  local object = "s3://bucket/x?endpoint=http://127.0.0.1:1&region=x"
  tap.raises("denied", "network = ", function() box:stage(object, "x") end)
  set_grants '{"process":true,"network":true}'
  tap.raises("denied", 'providers = "aws"', function() box:stage(object, "x") end)
  set_grants '{"process":true}'
  tap.raises("denied", "write = ", function() box:get("x", "/etc/passwd") end)
  tap.raises("denied", "env = ", function() box:exec("e", { argv = { "env" }, secrets = { "HOME" } }) end)
  tap.raises("denied", "env = ", function() box:call("c", { secrets = { "HOME" } }, function() end) end)
  local function kept()
    box:call("k", { checkpoint = "s3://bucket/?endpoint=http://127.0.0.1:1&region=x" }, function() end)
  end
  tap.raises("denied", "network = ", kept)
  set_grants '{"process":true,"network":["127.0.0.1:1"]}'
  tap.raises("denied", "providers = ", kept)
  tried["Instance:stage"], tried["Instance:get"] = " read network providers process", " write process"
  tried["Instance:call"], tried["Instance:exec"] = " env network process providers", " env process"
  tried["Instance:replace"] = " providers process"  -- asked as by rille.rent
end)

tap.test("a volume", function()
  set_grants(given)
  local volume = rille.volume("scratch", { size = "1GB", provider = "local", keep = false })
  row("Volume:delete", "providers", function() volume:delete() end, true)
end)

tap.test("a store", function()
  local store = rille.store "s3://bucket/?endpoint=http://127.0.0.1:1&region=x"
  row("Store:delete", "network", function() store:delete("k") end, true)
  row("Store:exists", "network", function() store:exists("k") end, true)
  row("Store:get", "network", function() store:get("k") end, true)
  row("Store:list", "network", function() store:list() end, true)
  row("Store:put", "network", function() store:put("k", "x") end, true)
  local calls = {
    delete = function() store:delete("k") end, exists = function() store:exists("k") end,
    get = function() store:get("k") end, list = function() store:list() end, put = function() store:put("k", "x") end,
  }
  set_grants '{"network":["127.0.0.1:1"]}'  -- but not the keys
  for name, call in pairs(calls) do
    tap.raises("denied", "providers = ", call)
    tried["Store:" .. name] = " network providers"
  end
  set_grants '{"network":["127.0.0.1:1"],"providers":["aws"]}'
  tap.raises("denied", "read = ", function() store:put("k", { file = "/etc/passwd" }) end)
  tap.raises("denied", "write = ", function() store:get("k", { file = "/etc/x" }) end)
  tried["Store:put"], tried["Store:get"] = " network providers read", " network providers write"
end)

tap.test("native code", function()
  set_grants "{}"
  -- refused by the rules of workflow code; under open rules unit.host looks
  tap.raises("state", "not available", require, "ffi")
  row("require", "kernels", function() require "rille.native" end)
end)

-- These call the functions above: the verbs of a cluster rent by rille.rent and call by box:call.
for _, name in ipairs { "Cluster:map", "Cluster:each" } do tried[name] = " process" end
for _, name in ipairs { "Cluster:resize", "rille.autoscale.run" } do tried[name] = " providers process" end

tap.test("each row was tried", function()
  for name, grants in pairs(rows.needs) do
    for grant in grants:gmatch("%S+") do
      tap.ok((tried[name] or ""):find(grant, 1, true), name .. " is not tried without " .. grant)
    end
  end
end)

tap.done()
