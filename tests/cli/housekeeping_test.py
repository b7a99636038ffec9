#!/usr/bin/env python3
"""What ends a machine that nobody uses, and what is rented that the journal does not know: `idle_after`, decided by the
agent, with and without a runner; `rille leases --all-providers` on the fake of a cloud.
usage: housekeeping_test.py RILLE FAKES"""
import glob, json, os, shutil, signal, subprocess, sys, tempfile, urllib.request

from tap import check, finish

rille, fakes = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
root = tempfile.mkdtemp(prefix="rille-keep-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1")


def run(*words, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


def leases(**more):
    return json.loads(run("leases", "--json", **more)[1])


def instances():
    return glob.glob(home + "/instances/i-*")


def begin(path):
    """The run's process, once it has said that it is ready."""
    p = subprocess.Popen([rille, "run", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         cwd=root)
    while p.stdout.readline() != "ready\n":
        pass
    return p


try:
    # idle_below = 1: whatever this machine's processors do, only calls and files count.
    idle = script("idle", """local box = rille.rent("box", { gpu = "cpu", idle_after = "1s", idle_below = 1 })
print(box:call("add", function() return 1 end))
while box.state ~= "released" do rille.sleep("20ms") end
print(box.state)
local ok, err = pcall(box.call, box, "more", function() return 2 end)
print(ok, err.kind, err.message, err.hint)
local other = rille.rent("other", { gpu = "cpu", idle_after = "1s", idle_below = 1, on_loss = "replace" })
while other.state == "live" do rille.sleep("20ms") end
print(other:call("again", function() return "again" end), other.generation)
print(other:telemetry().cpu_percent ~= nil or "no reading yet")
""")
    code, out = run("run", idle)
    check("an idle machine is released while its run goes on", code == 0 and "1\nreleased\n" in out, out)
    check("and a later use gets the reason", "is released" in out and "idle for 1.0s, its idle_after" in out, out)
    check("with on_loss = replace the next call gets another", "again\t2\n" in out, out)
    check("nothing is left", not instances() and not leases(), instances())
    events = json.loads(run("logs", "--json", "last")[1])
    check("the trail says so", sum(e["event"] == "idle" for e in events) == 2, [e["event"] for e in events])

    busy = script("busy", """local box = rille.rent("box", { gpu = "cpu", idle_after = "1s", idle_below = 1 })
print(box:call("long", function() local n = 0 for i = 1, 30 do rille.sleep("100ms") n = n + 1 end return n end))
""")
    code, out = run("run", busy)
    check("a machine where a call runs is not idle", code == 0 and "30\n" in out, out)

    waits = script("waits", """local box = rille.rent("box", { gpu = "cpu", idle_after = "2s", idle_below = 1 })
box:call("add", function() return 1 end)
box:telemetry()                          -- by now the agent knows that the result has been fetched
print("ready")
rille.sleep("1h")""")
    p = begin(waits)
    p.kill()
    p.wait()
    while instances():
        pass
    check("without a runner the agent ends it by itself", len(leases()) == 1, leases())
    code, out = run("leases", "--all-providers")
    check("a lease whose machine is gone is shown", code == 0 and "does not show the machine of box" in out, out)
    code, out = run("gc")
    check("and the reaper settles it", code == 0 and not leases(), out)
    # After these the box is unused; only a process that follows it learns that it has ended itself. No loop is endless.
    follows = """local box = rille.rent("box", { gpu = "cpu", idle_after = "%ds", idle_below = 1 })
print("ready")
for _ = 1, 400 do if box.state == "live" then rille.sleep("50ms") end end
print(box.state)
"""
    p = begin(script("resumes", follows % 5))
    p.kill()
    p.wait()
    run_id = json.loads(run("ps", "--json")[1])[0]["id"]
    code, out = run("resume", run_id)
    check("a resumed run follows what it has rented before", code == 0 and "released" in out, out)

    p = begin(script("breaks", follows % 3))
    locks = []
    while not locks:                         # the agent's process, once it holds its lock
        texts = [open(f).read() for f in glob.glob(home + "/instances/i-*/agent.lock")]
        locks = [text for text in texts if text.endswith("\n")]
    os.kill(json.loads(locks[0])["pid"], signal.SIGKILL)
    out = p.stdout.read()
    check("an agent that has died is started again, and sees that its machine is idle",
          p.wait() == 0 and "released" in out, out)
    check("of both nothing is left", not instances() and not leases(), instances())

    ends = script("ends", """local box = rille.rent("box", { gpu = "cpu", ttl = "3s", min_ttl = "1s" })
local ok, e = pcall(box.call, box, "long", function() rille.sleep("1h") end)
print(ok, e.code, e.message)
for _ = 1, 400 do if box.state ~= "released" then rille.sleep("50ms") end end
print(box.state)
""")
    code, out = run("run", ends)
    check("a call that runs when the ttl is over ends with that",
          "false\tttl_over\tthe ttl of 'box' has passed" in out, out)
    check("and its lease is released while the run goes on", code == 0 and "\nreleased\n" in out, out)
    unused = script("unused", """local box = rille.rent("box", { gpu = "cpu", orphan_after = "1s" })
local found = false
for _ = 1, 400 do
  found = found or rille.step("look", function()
    return os.execute("grep -qs pid '%s/instances/'*/agent.lock") == 0
  end)
  if not found then rille.sleep("50ms") end
end
print("found", found)
print(box:call("there", function() return "there" end))
""" % home)
    code, out = run("run", unused)
    check("an uncalled agent is started before orphan_after is over",
          code == 0 and "found\ttrue\nthere" in out, out)

    for option, said in [("idle_below = 2", "a number from 0 to 1"), ('idle_after = "soon"', "idle_after"),
                         ('max_age = "1h"', "the age at which"), ('ttl = "0s"', "must be positive"),
                         ("ttl = math.huge", "positive, finite"), ("hold_ttl = 1e13", "positive, finite"),
                         ("ttl = 0.0004", "positive, finite"),
                         ('ttl = "30s", min_ttl = "10m"', "longer than ttl = 30"),
                         ("ttl = 6", 'write ttl = "6h" or ttl = "6m"; if seconds are meant, ttl = "6s"'),
                         ("hold_ttl = 12", "a number without a unit means seconds"),
                         ('idle_aftr = "1h"', "did you mean idle_after")]:
        code, out = run("run", script("wrong", f'rille.rent("b", {{ gpu = "cpu", {option} }})'))
        check(f"rent refuses {option}", code == 1 and said in out, out)

    code, out = run("leases", "--all-providers")
    check("nothing there: nothing is shown", code == 0 and "show nothing" in out, out)
    p = begin(script("rents", """rille.rent("box", { gpu = "cpu" })
print("ready")
rille.sleep("1h")"""))
    code, out = run("leases")
    check("rille leases shows what ends it when all else fails", "ENDED BY" in out and "guest" in out, out)
    check("in JSON, too", leases()[0]["ended_by"] == "guest", leases())
    code, out = run("leases", "--all-providers")
    check("a machine of a lease is known", code == 0 and " live " in out and "guest" in out, out)
    p.send_signal(signal.SIGINT)
    p.wait(timeout=60)

    # A cloud that two homes of one installation share.
    fake = subprocess.Popen([sys.executable, "-B", fakes + "/aws.py", "--start", "0.02"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(fake.stdout.readline())
        settings = dict(told["settings"], traits=dict(create_timeout_ms=1_500, visibility_lag_ms=300),
                        regions=["us-east-1"])
        open(root + "/providers.json", "w").write(json.dumps({"aws": settings}))
        env.update(told["env"], RILLE_PROVIDERS=root + "/providers.json")
        p = begin(script("cloud", """rille.rent("trainer", { provider = "aws", gpu = "T4", count = 1, ttl = "2h" })
print("ready")
rille.signal("end")"""))
        code, out = run("leases", "--all-providers", "--json")
        survey = json.loads(out)
        mine = [m for m in survey["machines"] if m["provider"] == "aws"]
        check("a rented machine is its lease's own", code == 0 and len(mine) == 1 and mine[0]["account"] == "own" and
              mine[0]["name"] == "trainer" and mine[0]["price_per_hour"] > 0, out)
        elsewhere = dict(RILLE_HOME=root + "/other")
        code, out = run("leases", "--all-providers", **elsewhere)
        machine = mine[0]["machine"]
        check("another home does not know it: shown, and exit code 3", code == 3 and "unknown" in out and
              f"rille gc --unknown {machine}" in out, out)
        code, out = run("leases", "--all-providers", "--json", **elsewhere)
        unknown = json.loads(out)["machines"]
        check("in JSON with its tag, age and end", code == 3 and unknown[0]["account"] == "unknown" and
              unknown[0]["tag"].startswith("rille-") and "expires" in unknown[0] and "lease" not in unknown[0], out)
        code, out = run("gc", "--unknown", machine, **elsewhere)
        check("gc --unknown ends it", code == 0 and "released" in out, out)
        code, out = run("leases", "--all-providers", **elsewhere)
        check("then it is gone, or ends", code == 0 and "gc" not in out, out)
        run("signal", "last", "end")
        p.communicate(timeout=60)
        check("and its own run ends well", p.returncode == 0 and not leases(), run("leases"))
        nowhere = dict(endpoints=dict(settings["endpoints"], ec2="http://127.0.0.1:1"))
        regions = {"us-east-1": {}, "eu-west-1": nowhere}
        open(root + "/providers.json", "w").write(json.dumps({"aws": dict(settings, regions=regions)}))
        code, out = run("offers", "--provider", "aws", "--gpu", "T4")
        check("a region that does not answer is named beside the offers of the others", code == 0 and
              "us-east-1/" in out and "aws: region eu-west-1: " in out, out)
        code, out = run("run", script("there", """local box = rille.rent("there", { provider = "aws", gpu = "T4",
  count = 1, ttl = "2h", region = "us-east-1" })
box:release()
print(box.state)"""))
        check("and holds back no release", code == 0 and "released\n" in out, out)
        code, out = run("gc")
        check("gc says what it could not see, and exit code 3", code == 3 and
              "could not ask aws for its machines: region eu-west-1: " in out and "again" in out, out)
        open(root + "/providers.json", "w").write(json.dumps({"aws": settings}))
        ask = f"http://127.0.0.1:{told['port']}/_fake/fault"
        fault = json.dumps(dict(kind="auth", operation="*", times=50)).encode()
        urllib.request.urlopen(urllib.request.Request(ask, fault), timeout=20).read()
        code, out = run("leases", "--all-providers")
        check("a provider that cannot be asked is said, and exit code 3", code == 3 and "could not ask aws" in out, out)
    finally:
        fake.stdin.close()
        fake.wait(10)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
