#!/usr/bin/env python3
"""`rille show`: the timeline of a run, while it goes on and after. usage: show_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile, time

from tap import check, finish
from terminal import on_terminal

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-show-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    return subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root).stdout


open(root + "/a.lua", "w").write("""local rille = require "rille"
rille.scope("work", function()
  local box = rille.rent("trainer", { gpu = "cpu" })
  rille.map("parts", { 1, 2 }, function(i)
    rille.step("part", { retry = { attempts = 2, initial = "1ms" } }, function(try)
      if try < i then error("again") end
    end)
  end)
  box:exec("work", { argv = { "true" } })
end)
rille.step("fails", function() end)
pcall(rille.step, "broken", function() error("no") end)
rille.signal("go")
""")
said = open(root + "/said", "w+")
process = subprocess.Popen([rille, "run", "a.lua"], env=env, cwd=root, stdout=said, stderr=said)
for _ in range(400):
    rows = json.loads(run("show", "last", "--json") or "{}").get("timeline", [])
    if rows and rows[-1]["kind"] == "signal":
        break
    time.sleep(0.05)
if process.poll() is not None:
    said.seek(0)
    sys.exit(f"the run ended too soon: {said.read()}")
by_key = {r["key"]: r for r in rows}
check("every entry and every machine is a row", list(by_key)[0] == "main/trainer#1" and set(by_key) == {
    "main/trainer#1", "trainer", "main/parts[1]#1/part#1", "main/parts[2]#1/part#1", "main/work#1",
    "main/end of scope work#2", "main/fails#1", "main/broken#1", "main/go#1"}, rows)
check("in the order of their beginning", [r["start_seconds"] for r in rows] == sorted(r["start_seconds"] for r in rows))
check("with their attempts", [by_key[f"main/parts[{i}]#1/part#1"]["attempt"] for i in (1, 2)] == [1, 2], rows)
lease, exec_, waits = by_key["trainer"], by_key["main/work#1"], by_key["main/go#1"]
check("a machine with its cost", lease["kind"] == "lease" and lease["cost_micros"] == 0 and lease["machine"] and
      lease["state"] == "released" and "under_way" not in lease, lease)
check("it lives while it is used", lease["start_seconds"] <= exec_["start_seconds"] and
      lease["start_seconds"] + lease["seconds"] >= exec_["start_seconds"] + exec_["seconds"], (lease, exec_))
check("what failed", by_key["main/broken#1"]["state"] == "failed", rows)
check("what is under way lasts until now", waits["under_way"] and waits["state"] == "started", waits)
lines = [l for l in run("show", "last").splitlines() if l.startswith(("KEY", "main/", "trainer "))]
check("as a table", lines[0].split() == ["KEY", "KIND", "STATE", "TRY", "AT", "TOOK", "COST", "WHERE"] and
      len(lines) == 1 + len(rows) + 1, lines)
check("with ..", " .. " in lines[-2], lines)
show = [rille, "show", "last"]
wide = [l for l in on_terminal(show, 200, env, root).splitlines() if l.startswith(("main/", "trainer "))][:len(rows)]
check("a wide terminal shows bars", all(l.endswith("=") for l in wide[:-1]) and wide[-1].endswith("..."), wide)
check("a narrow one does not", not any(l.endswith("==") for l in on_terminal(show, 60, env, root).splitlines()))
run("signal", "last", "go")
process.wait(timeout=60)
rows = json.loads(run("show", "last", "--json"))["timeline"]
check("nothing is under way at its end",
      not any(r.get("under_way") for r in rows) and rows[-1]["state"] == "done", rows)

shutil.rmtree(root)
finish()
