#!/usr/bin/env python3
"""`rille show`: the timeline of a run, while it goes on and after. usage: show_test.py RILLE"""
import json, os, re, shutil, subprocess, sys, tempfile, time

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

said = run("show", "last")
check("why something was tried again", "TRIED AGAIN" in said and
      "main/parts[2]#1/part#1, attempt 2  invalid: a.lua:6: again" in said, said)
log = run("logs", "last")
check("the log has it, too", "[rille: step main/parts[2]#1/part#1 failed, attempt 2 in" in log and "again" in log, log)

open(root + "/long.lua", "w").write("""local rille = require "rille"
local list = {}
for i = 1, 1000000 do list[i] = i end
for i = 1, 100000 do print("line " .. i) end
return { losses = list, text = ("\\195\\164"):rep(5000), deep = { { { { 1 } } } }, x = 1, y = 2 }
""")
run("run", "long.lua")
said = run("show", "last")
shown = ('{"deep":[[[1 in all]]],"losses":[1,2,3,4,.. 1000000 in all],"text":"' + "\u00e4" * 50 +
         '..","x":1,.. 5 in all}')
check("a long result is shortened", shown in said and "6.9 MB in all: rille show 2" in said and len(said) < 2000, said)
check("JSON has all of it", len(json.loads(run("show", "last", "--json"))["result"]["losses"]) == 1000000)
for n in (1, 3, 20000):
    check(f"the last {n} lines of the log",
          run("logs", "last", "-n", str(n)) == "".join(f"line {i}\n" for i in range(100001 - n, 100001)))
check("more lines than there are", run("logs", "last", "-n", "200000").startswith("line 1\n"))
check("the last events", len(json.loads(run("logs", "last", "-n", "1", "--json"))) <= 1)
open(root + "/fails.lua", "w").write("""local rille = require "rille"
local function inner() error("on purpose") end
local function outer() inner() end
outer()
""")
run("run", "fails.lua")
said = run("show", "last")
check("a failed run shows its traceback", "error    invalid: fails.lua:2: on purpose" in said and
      "fails.lua:2: in function 'inner'" in said and "fails.lua:4: in the main chunk" in said, said)

open(root + "/dies.lua", "w").write("""local rille = require "rille"
print("before")
rille.step("dies", { retry = 3 }, function()
  local f = io.open("died")
  if not f then io.open("died", "w"):close() os.execute("kill -9 $PPID") os.execute("sleep 5") end
  f:close()
end)
print("after")
""")
run("run", "dies.lua")
run("resume", "last")
log = run("logs", "last").splitlines()
check("the log says where it was resumed", [re.sub(r"20\S+Z", "T", l) for l in log] ==
      ["before", "[rille: resumed at T]", "before", "after"], log)

shutil.rmtree(root)
finish()
