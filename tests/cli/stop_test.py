#!/usr/bin/env python3
"""Runs that are ended from another terminal, and cancelled runs that are resumed. usage: stop_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-stop-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words, timeout=60):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=timeout, cwd=root)
    return r.returncode, r.stdout + r.stderr


def start(name):
    """The script's process, when it has said that it has begun."""
    p = subprocess.Popen([rille, "run", name], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         cwd=root)
    lines = []
    while not lines or lines[-1] != "begun\n":
        lines.append(p.stdout.readline())
        assert lines[-1], lines
    return p


def rows():
    return json.loads(run("--json", "ps", "--all")[1])


def state():
    return rows()[0]["state"]


def script(name, text):
    open(f"{root}/{name}", "w").write('local rille = require "rille"\n' + text)


try:
    script("waits.lua", """
local box = rille.rent("box", { gpu = "cpu" })
rille.defer(function() print("cleaned up") end)
print("begun")
rille.sleep("1h")""")
    script("computes.lua", """
rille.step("first", function() return 1 end)
rille.defer(function() print("cleaning") rille.sleep("2s") print("cleaned up") end)
print("begun")
while true do end""")
    script("ends.lua", 'print("begun")\n')

    script("catches.lua", """
print("begun")
print("caught", pcall(rille.sleep, "1h"))""")
    p = start("catches.lua")
    p.send_signal(signal.SIGINT)
    out = p.communicate(timeout=30)[0]
    check("pcall catches the cancel of Ctrl-C, so that a script can clean up by hand",
          "caught\tfalse\tcancelled" in out, out)
    code, out = run("release", rows()[0]["id"], "--abandoned")
    check("a second Ctrl-C that comes when everything is released and the run has ended is no error",
          (code, out) == (130, ""), (code, out))

    p = start("waits.lua")
    shown = rows()[0]
    check("ps says which process runs it", shown["process"] == p.pid, shown)
    check("and show", f"process  {p.pid}" in run("show", "last")[1])
    code, out = run("cancel", "last")
    check("cancel asks the process to end", code == 0 and "is asked to end" in out, out)
    out = p.communicate(timeout=30)[0]
    check("which cleans up", p.returncode == 130 and "cleaned up" in out and "released box" in out, out)
    check("the run is cancelled", state() == "cancelled")
    code, out = run("cancel", shown["id"])
    check("cancel of what has ended is refused", code == 1 and "has ended: cancelled" in out, out)

    p = start("waits.lua")
    code, out = run("suspend", "last")
    p.communicate(timeout=30)
    check("suspend stops it where it stands", code == 0 and p.returncode == 143 and state() == "suspended", out)
    check("the box is still there", "box" in run("leases")[1])
    code, out = run("suspend", "last")
    check("a second one is refused", code == 1 and "no process runs" in out and "rille resume" in out, out)
    code, out = run("cancel", "last")
    check("cancel of a suspended run cleans up here", code == 0 and "cleaned up" in out and "released box" in out and
          "cancelled by" in out and state() == "cancelled", out)
    check("nothing is rented", "nothing is rented" in run("leases")[1])

    p = start("waits.lua")
    p.kill()
    p.communicate(timeout=30)
    code, out = run("--json", "cancel", "last")
    check("so does that of a killed one, with JSON", code == 0 and state() == "cancelled", out)

    other = start("waits.lua")
    alone = rows()[0]["id"]
    run("run", "ends.lua")
    code, out = run("signal", "last", "go")
    check("`last` is the one that has not ended", code == 0 and alone in out and "when it waits for it" in out, out)
    other.send_signal(signal.SIGTERM)
    other.communicate(timeout=30)
    again = subprocess.run(["timeout", "-s", "TERM", "2", rille, "resume", "last"], env=env, capture_output=True,
                           text=True, cwd=root)
    check("also to resume", f"resuming run {alone}" in again.stderr, again.stderr)
    run("cancel", alone)

    script("signals.lua", 'print("begun")\nreturn rille.signal("go")')
    p = start("signals.lua")
    while not json.loads(run("show", "last", "--json")[1])["entries"]:
        pass
    alone = rows()[0]["id"]
    code, out = run("signal", alone, "goo", "1")
    check("a signal that it does not wait for is kept, with a warning", code == 0 and
          f"warning: run {alone} waits for 'go' now, not for 'goo', which is kept until it does" in out and
          f"did you mean `rille signal {alone} go`?" in out, out)
    told = json.loads(run("--json", "signal", alone, "other")[1])
    check("and JSON says what it waits for", told["waits_for"] == ["go"] and told["signal"] == "other", told)
    code, out = run("signal", alone, "go")
    check("without one when it does", "gets 'go' when it waits for it" in out and "warning" not in out, out)
    p.communicate(timeout=30)

    # A cancelled run that computed is killed in its cleanup: resumed, it computes again, and that is not for ever.
    p = start("computes.lua")
    p.send_signal(signal.SIGINT)
    while p.stdout.readline() != "cleaning\n":
        pass
    p.kill()
    p.communicate(timeout=30)
    code, out = run("resume", "last", timeout=50)
    check("a cancelled run that computes ends when it is resumed", code == 130 and "cleaned up" in out and
          state() == "cancelled", (code, out))

    # A kernel that never ends cannot be stopped: it is left behind, and nothing else is.
    script("kernel.lua", """
local box = rille.rent("box", { gpu = "cpu" })
local dev = rille.device("cpu")
local spin = dev:kernel([[
extern "C" __global__ void spin(float* x) { volatile float* p = x; while (p[0] == 0.0f) {} }]])
local x = dev:zeros { 1 }
spin:launch({ grid = 1, block = 1 }, x)
rille.spawn("reads", function() x:item() end)
rille.sleep("10ms")
print("begun")
rille.sleep("1h")""")
    p = start("kernel.lua")
    p.send_signal(signal.SIGINT)
    out = p.communicate(timeout=30)[0]
    check("Ctrl-C ends a process with an endless kernel", p.returncode == 130 and "released box" in out and
          "left where it stands" in out and state() == "cancelled", (p.returncode, out))
    check("nothing is rented after it", "nothing is rented" in run("leases")[1])

    code, out = run("cancel", "nothing")
    check("a run that is not there", code == 1 and "there is no run 'nothing'" in out, out)
    script("named.lua", 'local a = rille.args { name = "x" }\nprint(a.name)')
    code, out = run("named.lua", "--name")
    check("a text without a value", code == 2 and "--name has no value: expected a text" in out, out)
finally:
    for row in rows():
        if row["state"] not in ("done", "failed", "cancelled"):
            run("cancel", row["id"])
    shutil.rmtree(root)
finish()
