#!/usr/bin/env python3
"""Steps that are killed, paused and limited in time, with the real command. usage: steps_test.py RILLE"""
import json, os, shutil, sqlite3, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-steps-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", ROOT=root)


def run(*words, timeout=60):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=timeout, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def lines(name):
    path = f"{root}/{name}"
    return open(path).read().split() if os.path.exists(path) else []


mark = """
local function mark(name) local f = io.open(os.getenv "ROOT" .. "/" .. name, "a") f:write("x\\n") f:close() end
local function there(name)
  local f = io.open(os.getenv "ROOT" .. "/" .. name)
  if f then f:close() end
  return f ~= nil
end
local function die() os.execute("kill -9 $PPID") end
"""

once = script("once", mark + """
local ok, err = pcall(rille.step, "pay", { effect = "once" }, function() mark("paid") die() end)
return { ok = ok, code = err.code, resource = err.resource }""")
code, out = run("run", once)
check("the process dies inside the step", code == -9, (code, out))
code, out = run("--json", "resume", "last")
result = json.loads(out).get("result", {})
check("the step is uncertain, and caught", code == 0 and result.get("code") == "step_uncertain", out)
check("its token is in the error", len(result.get("resource", "")) == 36, out)
check("it has run once", lines("paid") == ["x"], lines("paid"))

probed = script("probed", mark + """
return rille.step("pay", {
  effect = "once",
  probe = function(ctx) if there("probed") then return "done", ctx.token end return "absent" end,
}, function(_, ctx) mark("probed") die() end)""")
run("run", probed)
code, out = run("--json", "resume", "last")
check("a probe finds what a killed step did", code == 0 and len(json.loads(out)["result"]) == 36, out)
check("and it is not done again", lines("probed") == ["x"], lines("probed"))

poison = script("poison", mark + """
rille.step("poison", { crashes_max = 1 }, function() mark("poison") die() end)""")
run("run", poison)
run("resume", "last")
code, out = run("resume", "last")
check("a step that kills the process twice is given up", code == 1 and "crashed the process 2 times" in out, out)
check("it has run twice", lines("poison") == ["x", "x"], lines("poison"))

script("upload", mark + """
return rille.step("upload", { retry = { attempts = 2, initial = "1ms", on_exhausted = "pause" } }, function(attempt)
  mark("tries")
  if not there("key") then rille.error { kind = "auth", message = "the key has expired" } end
  return attempt
end)""")
parent = script("parent", 'return rille.run("upload.lua")')
for name, path, tries in (("a step", f"{root}/upload.lua", 2), ("a step of a child", parent, 6)):
    code, out = run("run", path)
    check(f"{name} pauses the run", code == 1 and "is paused: step 'upload' has used all its attempts" in out, out)
    check("which is suspended", json.loads(run("show", "last", "--json")[1])["state"] == "suspended")
    check("after all its attempts", len(lines("tries")) == tries, lines("tries"))
    open(root + "/key", "w").close()
    code, out = run("--json", "resume", "last")
    check("and goes on when it is resumed", code == 0 and json.loads(out)["result"] == 3, out)
    os.remove(root + "/key")
    open(root + "/tries", "a").write("x\n")

slow = script("slow", mark + """
rille.defer(function() rille.step("clean", function() mark("clean") end) end)
local n = 0
while rille.args().busy do n = n + 1 end
rille.sleep("1h")""")
for words in ([slow], [slow, "--busy"]):
    code, out = run("run", "--deadline", "300ms", *words)
    check("a run ends at its deadline", code == 124 and "the run's deadline" in out, (code, out))
    shown = json.loads(run("show", "last", "--json")[1])
    check("cancelled, and shown", shown["state"] == "cancelled" and "deadline" in shown, shown)
    check("the page says it, too", "deadline 20" in run("show", "last")[1])
check("it cleans up", lines("clean") == ["x", "x"], lines("clean"))
code, out = run("run", "--deadline", "soon", slow)
check("a deadline must be a duration", code == 2 and "--deadline" in out, out)

undo = script("undo", mark + """
rille.defer(function() rille.step("close", function() mark("closed") end) end)
rille.errdefer(function()
  rille.step("remove", function() mark("removed") end)
  rille.step("tell", function() if not there("told") then mark("told") die() end mark("told") end)
end)
rille.step("make", function() mark("made") end)
if rille.args().fails then rille.step("fail", function() error("no room") end) end
if rille.args().waits then rille.sleep("1h") end""")
code, out = run("run", undo, "--fails")
check("the process dies in an errdefer", code == -9 and lines("told") == ["x"] and lines("closed") == [], (code, out))
code, out = run("resume", "last")
check("which goes on where it was", code == 1 and "no room" in out and lines("removed") == ["x"], (code, out))
check("and the defer before it follows", lines("told") == ["x", "x"] and lines("closed") == ["x"], lines("told"))
code, out = run("run", "--deadline", "300ms", undo, "--waits")
check("a cancelled run undoes, too", code == 124 and lines("removed") == ["x"] * 2, (code, out))
code, out = run("run", undo)
check("one that ends well does not", code == 0 and lines("removed") == ["x"] * 2 and lines("made") == ["x"] * 3, out)

count_up = script("count", mark + """
return rille.step("add", { effect = "tx", db = "mine.db" }, function(_, ctx)
  ctx.db:exec("CREATE TABLE IF NOT EXISTS counter(n)")
  ctx.db:exec("INSERT INTO counter VALUES(1)")
  if not there("token") then
    local f = io.open(os.getenv "ROOT" .. "/token", "w") f:write(ctx.token) f:close()
    if rille.args().die then die() end
  end
  return ctx.db:query("SELECT count(*) AS n FROM counter")[1].n
end)""")


def counter():
    db = sqlite3.connect(root + "/mine.db")
    n = db.execute("SELECT count(*) FROM counter").fetchone()[0]
    db.close()
    return n


code, out = run("run", count_up)
check("a step's transaction lies beside the script", code == 0 and counter() == 1, out)
code, out = run("run", count_up)
check("of another run, it happens again", code == 0 and counter() == 2, out)
os.remove(root + "/token")
code, out = run("run", count_up, "--die")
check("killed in the body, nothing has happened", code == -9 and counter() == 2, out)
code, out = run("--json", "resume", "last")
check("and then it happens", code == 0 and counter() == 3 and json.loads(out)["result"] == 3, out)
os.remove(root + "/token")
run("run", count_up, "--die")
db = sqlite3.connect(root + "/mine.db")   # as if it had been killed just after the commit
db.execute("INSERT INTO counter VALUES(1)")
db.execute("INSERT INTO rille_steps VALUES(?,'','','4',0)", [lines("token")[0]])
db.commit()
db.close()
code, out = run("--json", "resume", "last")
check("killed after the commit, it is not done again", code == 0 and counter() == 4, out)
check("and its result is there", json.loads(out)["result"] == 4, out)
code, out = run("-e", f"for i = 1, 2 do rille.step('s', {{ effect = 'tx', db = '{root}/mine.db' }}, "
                      "function(_, ctx) ctx.db:exec 'INSERT INTO counter VALUES(1)' end) end")
code, out = run("-e", f"rille.step('s', {{ effect = 'tx', db = '{root}/mine.db' }}, "
                      "function(_, ctx) ctx.db:exec 'INSERT INTO counter VALUES(1)' end)")
check("outside of a workflow each counts", code == 0 and counter() == 7, out)
for n in (1, 2):
    code, out = run("simulate", count_up, "--runs", "1")
    check("and no rehearsal does", code == 0 and counter() == 7, (counter(), out))

shutil.rmtree(root)
finish()
