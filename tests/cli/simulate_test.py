#!/usr/bin/env python3
"""`rille simulate` and `rille plan`: the same seed is the same run, nothing is rented, errors say what to add.
usage: simulate_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-simulate-test-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


train = script("train", """
local args = rille.args { seed = 1, hours = 2 }
local box = rille.rent("trainer", { gpu = "H100:8", provider = "nobody" })
rille.sleep("30m")
local sim = { duration = args.hours .. "h", result = { loss = 1.5 } }
local got = box:call("train", { sim = sim }, function() return 1 end)
local code = box:exec("after", { argv = { "true" }, sim = { duration = "10m" } }).code
print(("loss %.1f, code %d, seed %s"):format(got.loss, code, args.seed))
return got.loss
""")

many = ["simulate", train, "--runs", "40", "--json", "--seed", "7", "--weather", "calm", "--deadline", "3h"]
code, out, err = run(*many)
data = json.loads(out)
check("all runs of a calm cloud end well", code == 0 and data["ended_well"] == 40 and not data["failed"], out + err)
seconds = data["seconds"]["p50"]
check("a run takes what was declared, and its machine", 9600 + 3 * 3600 > seconds >= 2 * 3600 + 40 * 60, seconds)
check("the cost is the price for that time", 31.92 * 2.1 < data["cost"]["p50"] < 31.92 * 1.3 * 3, data["cost"])
check("the odds of a deadline", data["deadline"] == {"seconds": 10800, "odds": 1}, data["deadline"])
check("seeds are numbered from the first", [o["seed"] for o in data["outcomes"]][:2] == [7, 8], data["outcomes"][:2])
again = json.loads(run(*many)[1])
check("the same seeds are the same runs", again["outcomes"] == data["outcomes"])

one = run("simulate", train, "--runs", "1", "--seed", "9", "--weather", "calm", "--", "--seed", "5")
check("one run is shown, with the script's output; the script's options come after --",
      one[0] == 0 and "loss 1.5, code 0, seed 5" in one[1] and "rent trainer at $31.92 per hour" in one[2], one)
check("the same run twice is the same to the letter",
      one == run("simulate", train, "--runs", "1", "--seed", "9", "--weather", "calm", "--", "--seed", "5"))

text = run("simulate", train, "-n", "60", "--hours", "8", "--deadline", "12h")
check("the report has the percentiles, the odds and the plots",
      all(word in text[1] for word in ("P10", "P90", "preemptions survived", "within 12h: ", "█", "\ncost\n")), text)

rough = script("rough", """
local box = rille.rent("b", { gpu = "H200:8", spot = true })
box:call("long", { sim = { duration = "90h" } }, function() end)
""")
code, out, err = run("simulate", rough, "-n", "20", "--weather", "rough")
check("failed runs are counted by kind, with the command that shows one",
      code == 1 and "runs failed" in out and f"see it with: rille simulate {rough} --runs 1 --seed " in out
      and "--weather rough" in out, out + err)

unknown = script("unknown", 'local box = rille.rent("b")\nbox:call("mystery", function() return 3 end)\n')
code, out, err = run("simulate", unknown, "-n", "20")
check("an unknown call is refused once, with what to write",
      code == 1 and "the duration of call 'mystery' is unknown" in err and "sim = { duration" in err, out + err)
check("plan does not mind", run("plan", unknown)[0] == 0 and "cpu" in run("plan", unknown)[1])
check("simulations write nothing and rent nothing", run("leases")[1] == "" or "b" not in run("leases")[1].split())
check("a real run teaches", run("run", unknown)[0] == 0 and run("simulate", unknown, "-n", "5")[0] == 0)
check("a misspelt field of sim is named",
      "duration" in run("run", script("wrong", 'local b = rille.rent("b")\nb:call("c", { sim = { duraton = "3h" } }, '
                                      'function() end)'))[2])

code, out, err = run("plan", train, "--json")
lease = json.loads(out)["leases"][0]
check("plan shows offer, price, time and money",
      lease["name"] == "trainer" and lease["offer"] == "h100x8@us-east" and lease["reserved"] == 31.92 * 24
      and 2 * 3600 < lease["expected_seconds"] < 4 * 3600, lease)
pool = script("pool", """
return #rille.map("ask", { 1, 2, 3, 4 }, function(n)
  return rille.pool("api", { slots = 2, rate = 2, per = "1h" }, function() return rille.sleep("10m") end)
end)
""")
outcome = json.loads(run("simulate", pool, "-n", "1", "--weather", "calm", "--json")[1])["outcomes"][0]
check("pools and their rates are rehearsed, too", outcome["ok"] and 3600 < outcome["seconds"] < 4400, outcome)
endless = script("endless", 'rille.signal("never")\n')
check("a script that waits for ever is ended", "60 days" in run("simulate", endless, "-n", "1", "--weather", "calm")[2])
check("no script is a usage error", run("simulate", "nosuch.lua")[0] == 2)
p = subprocess.Popen([rille, "simulate", train, "-n", "3"], env=env, stdout=subprocess.DEVNULL, cwd=root)
p.wait()
left = [d for base in ("/dev/shm", "/tmp") if os.path.isdir(base) for d in os.listdir(base)]
check("no folder is left behind", not [d for d in left if d.startswith(f"rille-simulate-{p.pid}-")])
# --- steps: nothing that cannot be repeated is done
effects = script("effects", """
local out = rille.step("deploy", { effect = "once", sim = { duration = "3m", result = { version = 7 } } }, function()
  io.open("%s/deployed", "a"):close()
  return { version = 1 }
end)
local n = rille.step("count", { effect = "tx", db = "%s/count.db" }, function(_, ctx)
  ctx.db:exec("CREATE TABLE IF NOT EXISTS t(n)")
  ctx.db:exec("INSERT INTO t VALUES (1)")
  return ctx.db:query("SELECT count(*) AS n FROM t")[1].n
end)
local slow = rille.step("slow", { sim = { duration = "1h" } }, function() return os.time() end)
print("version", out.version, "rows", n, "slow", slow, rille.now() > 3780)
""" % (root, root))
one = run("simulate", effects, "--runs", "1", "--weather", "calm")
check("what a step declares stands for its body, and takes its time",
      one[0] == 0 and "version\t7\trows\t1\tslow\tnil\ttrue" in one[1], one)
check("nothing was deployed, nor counted", not os.path.exists(root + "/deployed"))
many = json.loads(run("simulate", effects, "--runs", "5", "--json")[1])
check("each run finds the database as it was", many["ended_well"] == 5, many)
real = run("run", effects)
check("the real run does it all", real[0] == 0 and "version\t1\trows\t1" in real[1] and
      os.path.exists(root + "/deployed"), real)
check("and a simulation sees what is there", "rows\t2" in run("simulate", effects, "--runs", "1")[1])
os.remove(root + "/deployed")
bare = script("bare", """
local v = rille.step("deploy", { effect = "once" }, function() io.open("%s/deployed", "a"):close() return 1 end)
rille.rent("box", { gpu = "T4" })
print("v", v)""" % root)
refused = run("simulate", bare, "--runs", "1")
check("an effect of its own kind must be declared", refused[0] != 0 and
      "step 'deploy' has effect = 'once', so a simulation must not execute it" in refused[1] + refused[2] and
      "sim = {" in refused[1] + refused[2], refused)
planned = run("plan", bare)
check("a plan does without", planned[0] == 0 and "box" in planned[1] and not os.path.exists(root + "/deployed"),
      planned)
wrong = run("run", script("wrong", """rille.step("x", { sim = { checkpoint_every = "1m" } }, function() end)"""))
check("a step has no checkpoints to declare", wrong[0] == 1 and "unknown option 'checkpoint_every'" in wrong[2], wrong)

shutil.rmtree(root)
finish()
