#!/usr/bin/env python3
"""Pools over several runs and processes: slots, rates, kills, Ctrl-C. usage: pool_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-pool-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def start(path, *words):
    return subprocess.Popen([rille, "run", path, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, cwd=root)


# Each body notes its begin and its end; the most that overlapped is what the pool let through.
note = f"""
local function note(what)
  rille.step("note", function() local f = io.open("{root}/notes", "a"); f:write(what, "\\n"); f:close() end)
end
"""


def most_at_once():
    now = most = 0
    for line in open(root + "/notes"):
        now += 1 if line.strip() == "in" else -1
        most = max(most, now)
    os.remove(root + "/notes")
    return most, now


try:
    path = script("many", note + """
rille.map("each", { 1, 2, 3, 4, 5, 6 }, function()
  rille.pool("p", { slots = 2 }, function() note("in"); rille.sleep("50ms"); note("out") end)
end)""")
    code, out = run("run", path)
    check("two at a time within a run", code == 0 and most_at_once() == (2, 0), out)

    runs = [start(path) for _ in range(3)]
    done = [p.communicate(timeout=60) for p in runs]
    check("two at a time over three processes", all(p.returncode == 0 for p in runs) and most_at_once() == (2, 0), done)

    holds = script("holds", """
rille.pool("p", { slots = 1 }, function() print("inside"); rille.sleep("2s"); rille.step("x", function() end) end)
print("outside")""")
    p = start(holds)
    assert p.stdout.readline() == "inside\n"
    p.kill()
    p.wait()
    code, out = run("run", script("next", 'rille.pool("p", { slots = 1 }, function() print("got it") end)'))
    check("a killed run holds nothing", code == 0 and "got it" in out, out)

    # The killed one goes on inside the pool: it waits until the other one is out.
    other = start(script("other", note + """
rille.pool("p", { slots = 1 }, function() note("in"); print("inside"); rille.sleep("2s"); note("out") end)"""))
    assert other.stdout.readline() == "inside\n"
    code, out = run("resume", json.loads(run("ps", "--json")[1])[2]["id"])
    notes = open(root + "/notes").read().split()
    check("a resumed run takes its permit again, when it is free", code == 0 and "outside" in out and
          notes == ["in", "out"], (out, notes))
    other.communicate(timeout=60)

    p = start(holds)
    assert p.stdout.readline() == "inside\n"
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    code, out = run("run", script("next2", 'rille.pool("p", { slots = 1 }, function() print("got it") end)'))
    check("an interrupted run gives its permit back", code == 0 and "got it" in out and p.returncode == 130, out)

    code, out = run("run", script("fails", """
print(pcall(rille.pool, "p", { slots = 1 }, function() error("no") end))
rille.pool("p", { slots = 1 }, function() print("again") end)
local winner = rille.race {
  function() return rille.pool("p", { slots = 1 }, function() rille.sleep("200ms"); return "first" end) end,
  function() rille.sleep("50ms"); return rille.pool("p", { slots = 1 }, function() return "second" end) end,
}
print(winner)
print(rille.pool("p", { slots = 1 }, function() return "one", "two" end))"""))
    check("errors and lost races give it back",
          code == 0 and "again" in out and "first" in out and "one\ttwo" in out, out)

    # Ten at once, then one each 20 ms: 15 take at least 100 ms. Never a limit from above: the machine may be slow.
    code, out = run("run", script("rate", """
local began = rille.now()
for i = 1, 15 do rille.pool("r", { rate = 10, per = "200ms" }, function() end) end
local took = rille.now() - began
assert(took >= 0.099, took)
return took"""))
    check("a rate is kept", code == 0, out)
    code, out = run("run", script("wrong", """
print(pcall(rille.pool, "p", {}, function() end))
print(pcall(rille.pool, "p", { slots = 0 }, function() end))
print(pcall(rille.pool, "p", { per = "1s" }, function() end))
print(pcall(rille.pool, "p", { slot = 1 }, function() end))
print(pcall(rille.pool, "p", { slots = 1 }))"""))
    named = ("neither slots nor rate", "slots = 0", "per needs the option rate", "unknown option 'slot'",
             "expected a function")
    check("mistakes are named", code == 0 and all(w in out for w in named), out)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
