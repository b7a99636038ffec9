#!/usr/bin/env python3
"""Calls and programs on an instance as a script meets them: their limits of time, and what cannot be asked for.
usage: calls_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-calls-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\nlocal box = rille.rent("box", { provider = "local" })\n'
                          + source)
    r = subprocess.run([rille, "run", path], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout + r.stderr


# Each is caught, says which limit, and leaves the box of use.
code, out = run("caught", """
local function caught(verb, ...)
  local ok, err = pcall(box[verb], box, ...)
  print(verb, ok, err.kind, err.message, err.retryable)
end
caught("exec", "sleeper", { argv = { "sleep", "1000" }, timeout = "100ms" })
caught("call", "waits", { timeout = "100ms" }, function() rille.sleep("1h") end)
caught("call", "swallows", { timeout = "100ms" }, function() pcall(rille.sleep, "1h"); rille.sleep("1h") end)
print("after", box:exec("fine", { argv = { "true" }, timeout = "10m" }).code)
print("in time", box:call("fine", { timeout = "10m" }, function() return 5 end))
""")
check("the script goes on", code == 0 and "after\t0" in out and "in time\t5" in out, out)
check("a program is ended",
      "exec\tfalse\ttimeout\tprogram 'sleeper' took longer than its timeout of 100ms\tnil" in out, out)
for name in ("waits", "swallows"):
    check(f"a call that {name} is ended",
          f"call\tfalse\ttimeout\tcall '{name}' took longer than its timeout of 100ms\tnil" in out, out)

code, out = run("uncaught", 'box:exec("slow", { argv = { "sleep", "1000" }, timeout = "100ms" })')
check("uncaught, the command's exit code is a timeout's", code == 124 and "'slow' took longer" in out, (code, out))

code, out = run("options", """
for _, name in ipairs { "ports", "heartbeat" } do
  local ok, err = pcall(box.exec, box, "x", { argv = { "true" }, [name] = "1" })
  print(name, ok, err.kind, err.message)
end
""")
for name in ("ports", "heartbeat"):
    check(f"{name} is refused by its name", f"{name}\tfalse\tinvalid" in out and f"'{name}'" in out, out)

leases = subprocess.run([rille, "leases", "--json"], env=env, capture_output=True, text=True).stdout
check("nothing is left", json.loads(leases) == [], leases)
shutil.rmtree(root, ignore_errors=True)
finish()
