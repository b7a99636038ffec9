#!/usr/bin/env python3
"""What a process that was killed had begun, and the next one does not want any more: a run that a script started, and
machines whose row names none yet, end and are in the bill; what is rented anew later has a whole ttl.

usage: unwound_test.py RILLE
"""
import json, re, subprocess, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille = sys.argv[1]
RENT = 'local box = rille.rent("c", { provider = "%s", ttl = "2h", unguarded = true })\n'
CHILD = RENT % "runpod" + """rille.defer(function() rille.step("tidy up", function() return 1 end) end)
rille.sleep("10m")
"""


def user_of(provider):
    user = User(rille, provider, "--start", "0.02")
    Path(user.root, "providers.json").write_text(json.dumps({provider: user.settings()}))
    return user


def begin(user, *words):
    return subprocess.Popen([user.program, *words], env=user.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, cwd=user.root)


def script(user, name, text):
    Path(user.root, name).write_text('local rille = require "rille"\n' + text)
    return f"{user.root}/{name}"


def kill(process):
    process.kill()
    process.communicate()


def until(what, process=None):
    """Bounded by the test's own limit of time, and by the end of this process."""
    while not (found := what()):
        if process and process.poll() is not None:
            sys.exit(f"the run has ended with {process.returncode}: {process.communicate()[0]}")
        time.sleep(0.01)
    return found


def leases(user):
    return json.loads(user.rille("leases", "--json")[1] or "[]")


def main_run(user):
    return next(run["id"] for run in json.loads(user.rille("ps", "--all", "--json")[1]) if ".child-" not in run["id"])


def killed_while_child_lives(user, parent, signal=None):
    """Kills the run when its child has a machine and, after this signal, the run itself has something in its record."""
    script(user, "child.lua", CHILD)
    process = begin(user, "run", script(user, "parent.lua", parent))
    until(lambda: [l for l in leases(user) if l["state"] == "live"], process)
    if signal:
        user.rille("signal", main_run(user), signal)
    until(lambda: "done" in user.rille("show", main_run(user))[1], process)
    kill(process)


# Cancelled by a person before the record has been followed to its end.
user = user_of("runpod")
try:
    killed_while_child_lives(user, 'rille.all { b = function() rille.run("child.lua") end, a = function()\n'
                                   '  rille.sleep("10ms")\n  rille.sleep("10m")\nend }\n')
    out = user.rille("cancel", "last")
    check("a run that a script had started ends with it", user.ask("state")["alive"] == 0 and not leases(user), out)
    runs = user.rille("ps", "--all")[1]
    check("it is cancelled, too", runs.count("cancelled") == 2, runs)
    child = next(w for w in runs.split() if ".child-" in w)
    shown = user.rille("show", child)[1]
    check("and has done its own cleanup", "tidy up" in shown, shown)
finally:
    user.close()

# The loser of a race whose winner is in the record.
user = user_of("runpod")
try:
    killed_while_child_lives(user, """
local _, who = rille.race { work = function() return rille.run("child.lua") end,
  timer = function() rille.signal("enough") return "timer" end }
rille.step("won", function() return who end)
rille.signal("go on")
""", "enough")
    user.rille("signal", main_run(user), "go on")
    status, out, err = user.rille("resume", main_run(user))
    check("of a race's loser nothing is left", status == 0 and user.ask("state")["alive"] == 0 and not leases(user),
          (out, err))
finally:
    user.close()

# The machine of a create call that was not answered, whose end is cut off in its turn.
user = user_of("gcp")
try:
    process = begin(user, "run", script(user, "rent.lua", RENT % "gcp"))
    until(lambda: user.ask("state")["machines"], process)
    kill(process)
    run = json.loads(user.rille("ps", "--json", "-n", "1")[1])[0]["id"]
    process = begin(user, "gc", "--now", run)
    until(lambda: user.ask("state")["alive"] == 0)
    kill(process)
    until(lambda: user.rille("gc", "--now", run) and not leases(user))
    bill = json.loads(user.rille("cost", "--json")[1])
    check("a machine that ended before its row named it is in the bill",
          len(bill) == 1 and len(bill[0].get("machines", [])) == 1 and bill[0]["spent"] > 0, bill)
finally:
    user.close()

# A machine's end takes time, in which other fibers go on: a resumed run sees it end at the same place.
SEEN = {"by a handle": """
local work = rille.spawn("work", function()
  rille.scope("inner", function() BOX end)
end)
while not work:done() do rille.sleep("poll", "50ms") end
""", "in a variable": """
local over = false
rille.all {
  work = function() rille.scope("inner", function() BOX end) over = true end,
  polls = function() while not over do rille.sleep("poll", "50ms") end rille.step("seen", function() end) end,
}
""", "by the order of failures": """
local ok, why = pcall(rille.all, {
  a = function() BOX rille.step("a", function() error("a went wrong", 0) end) end,
  b = function() rille.sleep("50ms") rille.step("b", function() error("b went wrong", 0) end) end,
})
rille.step("note " .. tostring(why):match("(%a) went wrong"), function() end)
"""}
for how, text in SEEN.items():
    for moment in ("while it ends", "later"):
        user = user_of("runpod")
        try:
            box = 'local box = rille.rent("b", { provider = "runpod", ttl = "2h", unguarded = true })'
            source = text.replace("BOX", box) + 'rille.signal("go on")'
            process = begin(user, "run", script(user, "seen.lua", source))
            sign = "end.* (started|done)" if moment == "while it ends" else "go on.* started"
            until(lambda: re.search(rf"^main.*{sign} ", user.rille("show", "last")[1], re.M), process)
            kill(process)
            user.rille("signal", "last", "go on")
            status, out, err = user.rille("resume", "last")
            check(f"{how}, killed {moment}: goes on", status == 0 and user.ask("state")["alive"] == 0, (out, err))
        finally:
            user.close()

# A failure of yesterday, tried again today.
user = user_of("runpod")
try:
    bad = Path(user.root, "bad")
    bad.touch()
    user.run(f"""
rille.scope("s", function()
  local box = rille.rent("b", {{ provider = "runpod", ttl = "3s", unguarded = true }})
  rille.step("work", function() if io.open("{bad}") then error("broken") end return 1 end)
  rille.step("look", function() return box:describe().name end)
end)
""")
    bad.unlink()
    time.sleep(3.5)
    status, out, err = user.rille("resume", "last", "--retry-failed")
    machines = user.ask("state")["machines"]
    late = [m["tag"] for m in machines if int(m["tag"].rpartition("-x")[2]) < m["segments"][0][0]]
    check("what is rented anew has a ttl of its own", status == 0 and len(machines) == 2 and not late,
          (out, err, machines))
finally:
    user.close()
finish()
