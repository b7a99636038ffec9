#!/usr/bin/env python3
"""Autoscaling as a whole: on the simulated cloud, whose clock is virtual, the count follows a load curve within its
bounds and its cool-downs; here on this machine, through `kill -9` and resume, it is neither lost nor done twice.
usage: scale_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-scale-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


def leases():
    return {l["name"]: l["id"] for l in json.loads(run("leases", "--json")[1]) if l["state"] == "live"}


def until(names):
    """Bounded by the test's own limit of time."""
    while True:
        now = leases()
        if sorted(now) == names:
            return now


try:
    # A day: little to do until six, much until eighteen, little again. The metric sees each decision's instant, and the
    # count that the one before has led to.
    day = script("day", """
local gang = rille.cluster("gang", { count = 1, gpu = "T4", ttl = "30h" })
local begin = rille.now()
local looks, most, last = {}, 0, nil
rille.autoscale(gang, { above = 0.8, below = 0.3, cooldown_out = 300, cooldown_in = 600, min = 1, max = 6,
  interval = 60, metric = function(cluster)
    local hour = (rille.now() - begin) / 3600
    local load = hour >= 6 and hour < 18 and 3.3 or 0.5
    looks[#looks + 1] = { at = hour * 3600, count = cluster.count }
    return load / cluster.count
  end })
rille.sleep("24h")
for i = 2, #looks do
  local before, now = looks[i - 1], looks[i]
  most = math.max(most, now.count)
  if now.count < 1 or now.count > 6 then error("a count of " .. now.count) end
  if math.abs(now.count - before.count) > 1 then error("by more than one at a time") end
  if now.count ~= before.count then
    local pause = now.count > before.count and 300 or 600
    if last and before.at - last < pause - 0.01 then error("not cooled down: " .. (before.at - last)) end
    last = before.at
  end
end
local at_noon
for _, look in ipairs(looks) do if look.at < 12 * 3600 then at_noon = look.count end end
-- 3.3 machines' work: four are above 0.8 with it, five are not; one is enough for a half.
if at_noon ~= 5 or most ~= 5 or looks[#looks].count ~= 1 then
  error(("%d at noon, %d at most, %d at night"):format(at_noon, most, looks[#looks].count))
end
""")
    code, out, err = run("simulate", day, "-n", "1", "--json", "--weather", "calm")
    check("the count follows the load of a day, within its bounds and pauses",
          code == 0 and json.loads(out)["ended_well"] == 1, out + err)
    code, out, err = run("simulate", day, "-n", "8", "--json")
    check("in usual weather, too, in all runs", code == 0 and json.loads(out)["ended_well"] == 8, out + err)

    # Others change the count while the metric is read, or between two looks: what was read was of another cluster.
    moved = script("moved", """
local gang = rille.cluster("gang", { count = 1, gpu = "T4", ttl = "12h" })
local looks = 0
rille.autoscale(gang, { above = 0.8, below = 0.3, cooldown_out = 300, cooldown_in = 600, min = 1, max = 8,
  interval = 60, metric = function()
    looks = looks + 1
    if looks == 1 then rille.sleep("20m") end
    return looks == 1 and 0.9 or 0.1
  end })
rille.sleep("5m")
gang:resize(6)
rille.sleep("16m")
if gang.count ~= 6 then error(("'above' made %d of 6"):format(gang.count)) end
rille.sleep("8m")
if gang.count ~= 6 then error(("%d of 6 without the pause"):format(gang.count)) end
rille.sleep("30m")
if gang.count >= 6 then error("idle ones are never removed") end
""")
    code, out, err = run("simulate", moved, "-n", "1", "--json", "--weather", "calm")
    check("a count that others change meanwhile is not taken back, and is followed by the pause",
          code == 0 and json.loads(out)["ended_well"] == 1, out + err)

    target = script("target", """
local gang = rille.cluster("gang", { count = 1, gpu = "T4" })
rille.autoscale(gang, { target = 0.5, max = 8, interval = "1m", cooldown_out = "3m", cooldown_in = "3m",
  metric = function(cluster) return 2.9 / cluster.count end })
rille.sleep("30m")
if gang.count ~= 6 then error("held with " .. gang.count) end
gang:map("work", { 1, 2, 3 }, function(box) return box:call("w", { sim = { duration = "1h" } }, function() end) end)
""")
    code, out, err = run("simulate", target, "-n", "5", "--json")
    check("a target is held", code == 0 and json.loads(out)["ended_well"] == 5, out + err)

    # Machines that take eight minutes to set up, and more load than all of them can bear.
    slow = script("slow", """
local gang = rille.cluster("gang", { count = 1, gpu = "T4", ttl = "30h", setup = function(box)
  box:exec("setup", { argv = { "true" }, setup = true, sim = { duration = "8m" } })
end })
local first, last = {}, {}
rille.autoscale(gang, { above = 1, below = 0, cooldown_out = "5m", max = 4, interval = "10s", metric = function(cluster)
  local now = rille.now()
  first[cluster.count], last[cluster.count] = first[cluster.count] or now, now
  return 2
end })
rille.sleep("3h")
if gang.count ~= 4 then error("grown to " .. gang.count) end
for count = 2, 3 do
  local seen = last[count] - first[count]
  if seen < 285 then error(("%d instances were looked at for %d s"):format(count, seen)) end
end
""")
    code, out, err = run("simulate", slow, "-n", "5", "--json")
    check("a cool-down begins when the new machine is set up", code == 0 and json.loads(out)["ended_well"] == 5,
          out + err)

    # Leases of an hour under work of three.
    short = script("short", """
local gang = rille.cluster("gang", { count = 2, gpu = "T4", ttl = "1h" })
rille.autoscale(gang, { metric = function() return 0.5 end, min = 2, max = 4, interval = "5m" })
rille.sleep("150m")
if gang.count ~= 2 then error("a count of " .. gang.count) end
for _, box in ipairs(gang:boxes()) do
  if box.expires < rille.now() then error(box.name .. " is over") end
end
local items = { 1, 2, 3, 4, 5, 6 }
local out = gang:map("item", items, function(box, n)
  return box:call("work", { args = n, sim = { duration = "25m", result = n * n } }, function(k) return k * k end)
end)
for i in ipairs(items) do if out[i] ~= i * i then error("item " .. i) end end
""")
    code, out, err = run("simulate", short, "-n", "5", "--json", "--weather", "calm")
    check("an instance that has ended is no member; bounds replace it, and its interrupted work goes to another",
          code == 0 and json.loads(out)["ended_well"] == 5, out + err)
    code, out, err = run("simulate", short, "-n", "1", "--weather", "calm")
    check("a ttl shorter than the scaling is reported", " ends 1 h from now, by its ttl" in out + err
          and "goes to another instance: " in out + err, out + err)

    alone = script("alone", """
local gang = rille.cluster("gang", { count = 2, gpu = "T4", ttl = "1h" })
local function work(box) return box:exec("x", { argv = { "true" }, sim = { duration = "1m" } }) end
rille.sleep("2h")
local ok, err = pcall(gang.map, gang, "item", { 1, 2 }, work)
if ok or err.message ~= "cluster 'gang' has no instance left for item" or not err.hint:find("ttl") then
  error(ok and "it worked" or err.message)
end
if gang.count ~= 0 then error("a count of " .. gang.count) end
if pcall(gang.each, gang, "each", function() end) then error("each of none") end
gang:resize(1)
gang:map("item", { 1, 2 }, work)
""")
    code, out, err = run("simulate", alone, "-n", "3", "--json", "--weather", "calm")
    check("a cluster whose leases are over says so, and can grow again",
          code == 0 and json.loads(out)["ended_well"] == 3, out + err)

    # A budget for two, and a minimum of three.
    poor = script("poor", """
rille.budget { limit = 2.2 }
local gang = rille.cluster("gang", { count = 1, gpu = "T4", ttl = "2h" })
rille.autoscale(gang, { metric = function() return 0.5 end, min = 3, max = 4, interval = "30s", cooldown_out = "10m" })
rille.sleep("35m")
if gang.count ~= 2 then error("a count of " .. gang.count) end
""")
    code, out, err = run("simulate", poor, "-n", "1", "--weather", "calm")
    tries = (out + err).count("instances (fewer than 3)")
    check("what bounds cannot have is tried again after the cool-down, not at every look", tries == 4, out + err)

    busy = script("busy", """
local gang = rille.cluster("gang", { count = 2, gpu = "T4" })
rille.autoscale(gang, { max = 4, interval = "1m" })
local seen = gang:boxes()[1]:telemetry().utilization
local most = 0
gang:map("work", { 1, 2, 3, 4, 5, 6 }, function(box)
  box:call("w", { sim = { duration = "2h" } }, function() end)
  most = math.max(most, gang.count)
end)
if seen ~= 0 then error("busy without work: " .. tostring(seen)) end
if most ~= 4 then error("not grown: " .. most) end
rille.sleep("2h")
if gang.count ~= 1 then error("not shrunk: " .. gang.count) end
""")
    code, out, err = run("simulate", busy, "-n", "5", "--json", "--weather", "calm")
    check("utilization is what the agents tell", code == 0 and json.loads(out)["ended_well"] == 5, out + err)

    # On this machine, in real time.
    here = os.path.dirname(os.path.abspath(__file__))
    for file in (here + "/cluster_calls.lua", here + "/../lua/tap.lua"):
        shutil.copy(file, root)
    code, out, err = run("run", root + "/cluster_calls.lua", RILLE_HOME=root + "/calls")
    check("a busy instance is not taken, and an idle one is replaced", code == 0 and "\n1..5\n" in out
          and "not ok" not in out, out + err)

    load = root + "/load"
    open(load, "w").write("1.0")
    real = script("real", f"""
local gang = rille.cluster("gang", {{ count = 1, gpu = "cpu" }})
rille.autoscale(gang, {{ above = 0.8, below = 0.3, min = 1, max = 3, interval = "20ms", cooldown_out = 0,
  cooldown_in = 0, metric = function()
    return rille.step("load", function() return tonumber(io.open("{load}"):read("*a")) or 0.5 end)
  end }})
return rille.signal("end")
""")

    def start(*words):
        return subprocess.Popen([rille, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                cwd=root)

    def set_load(value):
        open(load + ".new", "w").write(value)
        os.rename(load + ".new", load)

    p = start("run", real)
    three = until(["gang-1", "gang-2", "gang-3"])
    set_load("0.5")
    p.send_signal(signal.SIGKILL)
    p.wait()
    run_id = json.loads(run("ps", "--json")[1])[0]["id"]
    p = start("resume", run_id)

    def looks():
        return [e for e in json.loads(run("show", run_id, "--json")[1])["entries"] if e["name"] == "gang scale"]

    seen = len(looks())
    while len(looks()) < seen + 5:
        pass
    check("a resumed run goes on with the machines that it had", leases() == three, (leases(), three))
    set_load("0.0")
    until(["gang-1"])
    p.send_signal(signal.SIGKILL)
    p.wait()
    set_load("1.0")
    code, out, err = run("watch", "--once")
    grown = until(["gang-1", "gang-4", "gang-5"])
    check("rille watch resumes the run, and with it the scaling; new instances have new names",
          code == 0 and grown["gang-1"] == three["gang-1"], (out, grown))
    set_load("0.5")
    run("signal", run_id, "end", "7")
    while json.loads(run("ps", "--json")[1])[0]["state"] == "running":
        pass
    state = json.loads(run("ps", "--json")[1])[0]["state"]
    check("at its end nothing is left", state == "done" and not leases(), (state, leases()))
    values = [e["value"] for e in looks() if e.get("value")]
    check("each decision is in the record, with its reason", any(
        v["from"] == 1 and v["to"] == 2 and v["why"] == "above 0.8" for v in values), values[:3])
    made = json.loads(run("leases", "--all", "--json")[1])
    names = [l["name"] for l in made]
    check("no name was rented twice", len(names) == len(set(names)), names)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
