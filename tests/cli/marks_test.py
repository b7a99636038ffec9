#!/usr/bin/env python3
"""Every verb does what its mark says. Each annotated function (stdlib/meta, stdlib) is called here:
  durable        leaves an entry in the record, which answers when the run is replayed; and is refused in a step's body,
                 or is done there unrecorded, as a part of the step (the few that LIVE_IN_STEPS names)
  deterministic  leaves none of its own, and gives the same again
  step-only      is refused in workflow code
A durable, deterministic or step-only function that has no call below fails. usage: marks_test.py RILLE LUAJIT"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

contract = os.path.abspath(os.path.dirname(__file__) + "/../contract")
sys.path[:0] = [contract + "/stores", contract + "/fakes"]
import fake_store  # noqa: E402

rille, luajit = os.path.abspath(sys.argv[1]), sys.argv[2]
source = os.path.abspath(os.path.dirname(__file__) + "/../..")
root = tempfile.mkdtemp(prefix="rille-marks-")
bucket = fake_store.S3()
env = dict(os.environ, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1", AWS_REGION=bucket.region,
           AWS_ENDPOINT_URL_S3=bucket.endpoint, **bucket.environment())


def marks():
    reader = f"""
package.path = "{source}/stdlib/tools/?.lua;" .. package.path
local luacats, modules = require "luacats", {{}}
for file in io.popen("ls {source}/stdlib/meta/*.lua {source}/stdlib/*.lua"):lines() do
  local name = file:match("stdlib/(.*)%.lua$"):gsub("/", ".")
  modules[#modules + 1] = {{ name = "rille." .. name, file = file, source = io.open(file):read("*a") }}
end
local index = luacats.index(modules)
for name, entry in pairs(index.entries) do
  if entry.kind == "function" and not name:find("^rille%.tools") then print(name, entry.mark) end
end"""
    open(root + "/reader.lua", "w").write(reader)
    out = subprocess.run([luajit, root + "/reader.lua"], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in out.splitlines())


# What to write before, and the call itself. Its result is recorded by a step, and must be the same when replayed.
BOX = 'local box = rille.rent("box", { gpu = "cpu", provider = "local" })'
GANG = 'local gang = rille.cluster("gang", { gpu = "cpu", provider = "local" })'
FIBER = 'local fiber = rille.spawn("child", function() return 7 end)'
STORE = 'local store = rille.store "s3://bucket" store:put("a", "text")'
DISK = 'local vol = rille.volume("x", { size = "1GB", provider = "local" })'
CTX = 'rille.step("s", {{ effect = "tx", db = "{root}/x.db" }}, function(_, c) math.kept = c end)'
CALLS = {
    "rille.step": ("", 'rille.step("x", function() return os.tmpname() end)'),
    "rille.rent": ("", 'rille.rent("x", { gpu = "cpu", provider = "local" }).name'),
    "rille.try_rent": ("", 'rille.try_rent("x", { gpu = "cpu", provider = "local" }).name'),
    "rille.offers": ("", 'rille.offers { provider = "local" }[1].id'),
    "rille.price_history": ("", '#rille.price_history { gpu = "A100" }'),
    "rille.quotas": ("", '#rille.quotas()'),
    "rille.estimate": ("", 'rille.estimate { model = "gpt2", tokens = 1e9 }.flops'),
    "rille.gpus": ("", 'rille.gpus("A100").name'),
    "rille.race": ("", 'rille.race { a = function() return 1 end, b = function() return 2 end }'),
    "rille.sleep": ("", 'rille.sleep("x", "1ms")'),
    "rille.patched": ("", 'rille.patched("x")'),
    "rille.signal": ("", 'rille.signal("x", { timeout = "1ms" })'),
    "rille.pool": ("", 'rille.pool("x", { slots = 1 }, function() return 3 end)'),
    "rille.run": ("", 'rille.run("{root}/child.lua")'),
    "rille.now": ("", "rille.now()"),
    "rille.budget": ("", "rille.budget { limit = 5 }"),
    "rille.volume": ("", 'rille.volume("x", { size = "1GB", provider = "local" }).id'),
    "Volume:delete": (DISK, "vol:delete()"),
    "Volume:describe": (DISK, "vol:describe().id"),
    "rille.store": ("", 'tostring(rille.store "s3://bucket")'),
    "Store:put": ('local store = rille.store "s3://bucket"', 'store:put("a", "text").version'),
    "Store:get": (STORE, 'store:get("a")'),
    "Store:list": (STORE, 'store:list()[1].version'),
    "Store:exists": (STORE, 'store:exists("a")'),
    "Store:delete": (STORE, 'store:delete("a")'),
    "Instance:stage": (BOX, 'box:stage("{root}/child.lua", "child.lua")'),
    "Instance:get": (BOX + 'box:stage("{root}/child.lua", "child.lua")', 'box:get("child.lua", "{root}/got.lua")'),
    "Instance:call": (BOX, 'box:call("x", function() return os.tmpname() end)'),
    "Instance:exec": (BOX, 'box:exec("x", { argv = { "mktemp", "-u" } }).output'),
    "Instance:release": (BOX, "box:release()"),
    "Instance:replace": (BOX, "box:replace()"),
    "Instance:resize": (BOX, 'box:resize { gpu = "cpu" }'),
    "Instance:detach": (BOX, 'box:detach("1h")'),
    "Instance:preempting": (BOX, "box:preempting()"),
    "Instance:describe": (BOX, "box:describe().name"),
    "Instance:telemetry": (BOX, "box:telemetry().memory_total_bytes"),
    "rille.cluster": ("", 'rille.cluster("x", { gpu = "cpu", provider = "local" }).name'),
    "Cluster:map": (GANG, 'gang:map("x", { 1, 2 }, function(_, n) return n end)[2]'),
    "Cluster:each": (GANG, 'gang:each("x", function(box) return box.name end)[1]'),
    "Cluster:boxes": (GANG, "gang:boxes()[1].name"),
    "Cluster:resize": (GANG, "gang:resize(2)"),
    "Cluster:release": (GANG, "gang:release()"),
    "rille.args": ("", "rille.args { n = 3 }.n"),
    "rille.scope": ("", 'rille.scope("x", function() return 3 end)'),
    "rille.defer": ("", "rille.defer(function() end)"),
    "rille.errdefer": ("", "rille.errdefer(function() end)"),
    "rille.spawn": ("", 'rille.spawn("x", function() return 3 end):wait()'),
    "rille.map": ("", 'rille.map("x", { 1, 2 }, function(n) return n end)[2]'),
    "rille.all": ("", "rille.all { a = function() return 1 end }.a"),
    "rille.error": ("", 'select(2, pcall(rille.error, { kind = "state", message = "x" })).message'),
    "Fiber:wait": (FIBER, "fiber:wait()"),
    "Fiber:cancel": (FIBER, "fiber:cancel()"),
    "Fiber:done": (FIBER, "fiber:done()"),
    "rille.optim.cosine": ("", "rille.optim.cosine { lr = 1, steps = 10 }(5)"),
    "rille.inspect": ("", "rille.inspect { 1, a = {} }"),
    "rille.json.encode": ("", "rille.json.encode { a = { 1, 2.5 } }"),
    "rille.json.decode": ("", """rille.json.decode('{"a": [1]}').a[1]"""),
    "rille.csv.parse": ("", 'rille.csv.parse("a,b\\n1,2\\n")[1].b'),
    "rille.csv.read": ("", 'rille.csv.read("{root}/table.csv")'),
    "rille.csv.write": ("", 'rille.csv.write("{root}/table.csv", {})'),
    "rille.read": ("", 'rille.read("{root}/child.lua")'),
    "rille.write": ("", 'rille.write("{root}/x", "text")'),
    "Step:heartbeat": ('rille.step("s", function(_, c) math.kept = c end)', "math.kept:heartbeat(1)"),
    "Database:exec": (CTX, 'math.kept.db:exec("CREATE TABLE t(n)")'),
    "Database:query": (CTX, 'math.kept.db:query("SELECT 1 AS n")[1].n'),
}
FLAT = """
local function flat(v)
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for key, value in pairs(v) do parts[#parts + 1] = key .. "=" .. flat(value) end
  return "{" .. table.concat(parts, ",") .. "}"
end
"""
KIND = {"Volume:delete": "release", "rille.try_rent": "rent", "Instance:stage": "stage",
        "Instance:get": "get", "rille.estimate": "offers",
        **dict.fromkeys(["Store:put", "Store:get", "Store:list", "Store:exists", "Store:delete"], "store"),
        "Cluster:map": "step", "Cluster:each": "step"}  # whose lease is over, then the race of the work
NO_ENTRY = {"rille.budget": "a row of the run", "Instance:describe": "asked anew each time",
            "Volume:describe": "asked anew each time",
            **dict.fromkeys(["rille.cluster", "Cluster:resize", "Cluster:release"], "in fibers, one per instance")}
LIVE_IN_STEPS = {"rille.sleep", "rille.now", "Instance:describe", "Volume:describe", "Store:put", "Store:get",
                 "Store:list", "Store:exists", "Store:delete"}


def run(text, *words):
    home = tempfile.mkdtemp(dir=root)
    open(home + "/script.lua", "w").write('local rille = require "rille"\n' + text)
    r = subprocess.run([rille, "run", home + "/script.lua", *words], env=dict(env, RILLE_HOME=home + "/home"),
                       capture_output=True, text=True, timeout=60)
    return home, r.returncode, r.stdout, r.stderr


def command(home, *words):
    r = subprocess.run([rille, *words], env=dict(env, RILLE_HOME=home + "/home"), capture_output=True, text=True,
                       timeout=60)
    return r.returncode, r.stdout, r.stderr


def test(name, mark):
    before, call = (text.replace("{root}", root).replace("{{", "{").replace("}}", "}") for text in CALLS[name])
    show = f"local got = {call}\n" if name.split(".")[-1] not in ("defer", "errdefer") else f"{call} local got\n"
    if mark == "step-only":
        home, code, out, err = run(f"{before}\n{show}")
        check(f"{name} is refused in workflow code", code == 1 and "error (state)" in err and
              ("is over" in err or "has ended" in err or "works only inside rille.step" in err), err)
        return
    plain = f"""{FLAT}{before}
rille.step('mark', function() end)
{show}
local kept = rille.step('done', function() return flat(got) end)
assert(kept == flat(got), "it was " .. kept .. " and is " .. flat(got))
"""
    # The second part dies once, so that the first is replayed.
    dies = f"""rille.step("die", function()
  local f = io.open("{root}/died"); if f then f:close() return end
  io.open("{root}/died", "w"):close(); os.execute("kill -9 $PPID")
end)"""
    home, code, out, err = run(plain + dies)
    check(f"{name} can be called", code == -9, err)
    code, out, err = command(home, "resume", "last")
    check(f"{name} gives the same when it is replayed", code == 0, err)
    os.remove(root + "/died")
    shown = json.loads(command(home, "show", "last", "--json")[1])
    main = [e for e in shown["entries"] if e["fiber"] == "main"]
    at = [e["name"] for e in main]
    mine = main[at.index("mark") + 1:at.index("done")]
    if mark == "durable" and name not in NO_ENTRY:
        kind = KIND.get(name, name.split(":")[-1].split(".")[-1])
        check(f"{name} is in the record", [e["kind"] for e in mine][:1] == [kind], mine)
    else:
        check(f"{name} leaves nothing of its own in the record", mine == [], mine)
    if mark == "durable":
        home, code, out, err = run(f"{before}\nrille.step('outer', function()\n{show}end)")
        if name in LIVE_IN_STEPS:
            check(f"{name} works in a step, as a part of it", code == 0, err)
        else:
            check(f"{name} is refused in a step", code == 1 and "inside the body of step 'outer'" in err, err)


try:
    open(root + "/child.lua", "w").write("return 42\n")
    for name, mark in sorted(marks().items()):
        if mark == "ephemeral":
            continue
        if name not in CALLS:
            check(f"{name} ({mark}) is called by this test", False, "add it to CALLS")
            continue
        test(name, mark)
finally:
    bucket.close()
    shutil.rmtree(root, ignore_errors=True)
finish()
