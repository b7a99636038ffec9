#!/usr/bin/env python3
"""Runs that go on with other code or from an earlier place: resume --with, patched, fork, invalidate, --retry-failed.
usage: rewrite_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-rewrite-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write(PRELUDE + source)
    return f"{root}/{name}.lua"


def did(reset=True):
    """What the steps' bodies wrote, since the last time."""
    try:
        text = open(root + "/did").read().split()
    except FileNotFoundError:
        text = []
    if reset and text:
        os.remove(root + "/did")
    return text


def show(which="last"):
    return json.loads(run("show", which, "--json")[1])


def keys(which="last"):
    return [e["key"] for e in show(which)["entries"]]


# do_(name): a step whose effect is a word in a file; die(): a step in which the runner is killed.
PRELUDE = f'''local rille = require "rille"
local function note(word) local f = io.open("{root}/did", "a"); f:write(word, "\\n"); f:close() end
local function do_(name, value)
  return rille.step(name, function() note(name) return value or name end)
end
local function die()
  rille.step("die", {{ retry = 5 }}, function() os.execute("sleep 0.05; kill -9 $PPID") end)
end
'''

# --- resume --with
old = script("old", 'do_ "a"; do_ "b"; die(); return "old"')
code, out = run("run", old)
check("the runner is killed", code == -9, (code, out))
check("a and b are done", did() == ["a", "b"])
bad = script("bad", 'do_ "a"; do_ "c"; return "bad"')
code, out = run("resume", "last", "--with", bad)
check("a script that goes another way is refused", code == 1 and "divergence" in out, out)
check("both places are named", "bad.lua" in out and "old.lua" in out, out)
check("before any effect", did() == [], "")
code, out = run("resume", "last", "--with", script("broken", "this is no lua"))
check("one that does not compile is refused", code == 1 and "broken.lua" in out, out)
check("and the run can still go on", show()["state"] in ("suspended", "diverged"), show()["state"])
open(root + "/part.lua", "w").write('return { word = "of the new one" }')
new = script("new", 'local part = require "part"; do_ "a"; do_ "b"; do_ "c"; rille.step("die", function() note '
      '"die" end); '
             'return part.word .. rille.home:sub(1, 0)')
wrong = run("resume", "last", "--with", new)
check("the order of what is begun counts, too", wrong[0] == 1 and "divergence" in wrong[1], wrong)
new = script("new", 'local part = require "part"; do_ "a"; do_ "b"; rille.step("die", function() note "new" '
      'end); do_ "c"; '
             'rille.step("again", function() if not io.open("' + root + '/once") then '
      'io.open("' + root + '/once", "w"):close() '
             'os.execute("kill -9 $PPID") end end); return part.word')
code, out = run("resume", "last", "--with", new)
check("the new script goes on", code == -9 and did() == ["new", "c"], out)
os.remove(new)
os.remove(root + "/part.lua")
code, out = run("resume", "last", "--json")
check("and is the run's own from then on", code == 0 and json.loads(out)["result"] == "of the new one", out)
check("the trail has it", any(e["event"] == "code" for e in json.loads(run("logs", "last", "--json")[1])))
check("--with names a file", run("resume", "last", "--with", "none.lua")[0] == 2)

# --- patched
patched = 'local p = rille.patched("more"); if p then do_ "more" end; '
first = script("first", 'for i = 1, 2 do do_("round" .. i) end; die()')
run("run", first)
did()
second = script("second", 'local n = 0; for i = 1, 2 do if rille.patched("count") then n = n + 1 end; '
      'do_("round" .. i) end; '
                'rille.step("die", function() end); if rille.patched("count") then n = n + 100 end; return n')
code, out = run("resume", "last", "--with", second, "--json")
check("a marker is false where the run has been, true where it goes",
      code == 0 and json.loads(out)["result"] == 100, out)
check("nothing was done twice", did() == [], "")
code, out = run("--json", "run", second)
check("in a new run it is true", json.loads(out)["result"] == 102, out)
check("and in the record", sum("/count#" in k for k in keys()) == 3, keys())
run("run", script("joins", 'local h = rille.spawn("w", function() do_ "x" end); h:wait(); do_ "after"; die()'))
did()
code, out = run("resume", "last", "--json", "--with", script("joins", 'local seen = {}; local h = '
      'rille.spawn("w", function() '
                'do_ "x"; seen[1] = rille.patched("tail") if seen[1] then do_ "y" end end); h:wait(); do_ "after"; '
                'rille.step("die", function() end); return seen[1]'))
check("a fiber that had ended went on without the marker", code == 0 and json.loads(out)["result"] is False, out)
check("so what it guards is not done", did() == [], "")

# --- fork
run("run", script("chain", 'local x = math.random(1, 1e9); local y = rille.step("one", { args = x }, function() '
      'note "one" '
                  'return 1 end); local t = rille.now(); do_ "two"; local z = rille.map("m", { 1, 2, 3 }, function(i) '
                  'return do_("item" .. i, i) end); do_ "three"; return { x, t, z, math.random(1, 1e9) }'))
whole = show()
did()
check("keys are what show prints", "main/two#1" in run("show", "last")[1], run("show", "last")[1])
code, out = run("fork", whole["id"], "--from", "main/three#1", "--json")
check("a fork does anew what comes from there on", code == 0 and did() == ["three"], out)
check("with the same randomness, clock and results", json.loads(out)["result"] == whole["result"], out)
forked = show()
check("it is a run of its own", forked["id"] != whole["id"] and forked["forked_from"] == whole["id"] + " main/three#1")
check("the origin is untouched", show(whole["id"]) == whole)
code, out = run("fork", "last", "--from", "main/two#1", "--json")
check("a fork can be forked", code == 0 and sorted(did()) == ["item1", "item2", "item3", "three", "two"], out)
check("with that randomness", json.loads(out)["result"] == whole["result"], out)
code, out = run("fork", whole["id"], "--from", "main/twoo#1")
check("did you mean", code == 1 and "did you mean main/two#1?" in out, out)
other = script("other", 'local x = math.random(1, 1e9); rille.step("one", { args = x }, function() end); rille.now(); '
               'return do_ "else"')
code, out = run("fork", whole["id"], "--from", "main/two#1", "--with", other, "--json")
check("a fork may go on with another script",
      code == 0 and did() == ["else"] and json.loads(out)["result"] == "else", out)

# --- invalidate
run("run", script("wrong", 'local a = do_ "a"; local b = rille.step("b", function() note "b" '
                  'local f = io.open("' + root + '/input") return f and f:read("*a") or "bad" end); return '
      'do_("c", b)'))
check("a result that is wrong", show()["result"] == "bad" and did() == ["a", "b", "c"])
open(root + "/input", "w").write("good")
code, out = run("invalidate", "last", "main/b#1")
check("it and what came after are forgotten",
      code == 0 and keys() == ["main/a#1"] and "1 entries kept, 2 left out" in out, out)
code, out = run("resume", "last", "--json")
check("and done anew", json.loads(out)["result"] == "good" and did() == ["b", "c"], out)

# --- leases
leased = script("leased", 'do_ "before"; rille.scope(function() local box = rille.rent("box", { provider = "local" }); '
                'do_ "in1"; do_ "in2" end); do_ "after"; return "done"')
run("run", leased)
did()
first = show()
leased_id = first["id"]
code, out = run("fork", first["id"], "--from", "main/in2#1")
check("inside an open lease a fork goes back to before its rent", code == 0 and "back to before its rent" in out, out)
check("and rents its own", did() == ["in1", "in2", "after"] and len(show()["leases"]) == 1 and
      show()["leases"][0]["id"] != first["leases"][0]["id"], show())
code, out = run("fork", first["id"], "--from", "main/after#1")
check("one that was closed there stays closed", code == 0 and did() == ["after"] and show()["leases"] == [], out)

# --- fork --rerent: what was done on the lease stands, its machine is another
open(root + "/corpus", "w").write("twelve bytes")
BUSY = """
rille.scope(function()
  local box = rille.rent("box", { provider = "local", ttl = "1h" })
  box:stage("corpus", "text")
  box:call("tokens", { setup = true }, function()
    local f = io.open("tokens", "w")
    f:write(#io.open("text"):read("*a"))
    f:close()
  end)
  do_ "in1"
  local n = box:call("read", function()
    return io.open("tokens"):read("*a") .. (io.open("later") and " and what came later" or "")
  end)
  do_("read" .. n)
  box:stage("corpus", "later")
  do_ "in2"
end)
return "done"
"""
code, out = run("run", script("busy", BUSY))
check("the origin", code == 0 and did() == ["in1", "read12", "in2"], out)
first = show()
code, out = run("fork", first["id"], "--from", "main/read#1", "--rerent", "--json")
forked = show()
lease = forked["leases"][0]
check("a fork may have machines of its own", code == 0 and did() == ["read12", "in2"] and
      len(forked["leases"]) == 1 and lease["id"] != first["leases"][0]["id"] and lease["state"] == "released" and
      lease["generation"] == 1, out)
check("of the origin nothing has changed", show(first["id"])["leases"] == first["leases"])
code, out = run("fork", "last", "--from", "main/in2#1", "--rerent")
check("a fork of it, too", code == 0 and did() == ["in2"] and "rented anew when first used: box" in out, out)
cost = json.loads(run("cost", "last", "--json")[1])
check("which never needed a machine", [(c["generation"], c["spent"]) for c in cost] == [(0, 0)],
      run("cost", "last", "--json"))
check("nothing is left of them", json.loads(run("leases", "--json")[1]) == [])
code, out = run("fork", first["id"], "--from", "main/in2#1", "--rerent", "--with",
                script("poorer", "rille.budget { limit = 0 } " + BUSY), "--json")
check("it may need none", code == 0 and did() == ["in2"], out)
changed = script("changed", BUSY.replace('"*a"', '"*l"', 1))
code, out = run("fork", first["id"], "--from", "main/in2#1", "--rerent", "--with", changed, "--json")
check("another function is another call", json.loads(out)["error"]["kind"] == "divergence" and did() == [], out)
first = json.loads(run("show", leased_id, "--json")[1])

run("invalidate", first["id"], "main/in2#1")
check("an invalidation does the same", keys(first["id"]) == ["main/before#1"], keys(first["id"]))
code, out = run("resume", first["id"], "--json")
again = show(first["id"])
check("and rents again under the same name", code == 0 and did() == ["in1", "in2", "after"] and
      len(again["leases"]) == 1 and again["leases"][0]["state"] == "released", out)
check("nothing is left", json.loads(run("leases", "--json")[1]) == [])

# --- retry-failed
flaky = script("flaky", 'do_ "a"; rille.defer(function() do_ "cleanup" end); local b = rille.step("b", { retry '
      '= 1 }, function() note "b" '
               'if not io.open("' + root + '/up") then error("service is down") end return "b" end); return b')
code, out = run("run", flaky)
check("it fails", code == 1 and did() == ["a", "b", "cleanup"], out)
newest = json.loads(run("ps", "--json")[1])[0]["id"]
code, out = run("resume", newest)
check("an ended run says how to go on", code == 1 and "rille fork" in out and
      f"`rille resume {newest} --retry-failed`" in out, out)
open(root + "/up", "w").close()
code, out = run("resume", "last", "--retry-failed", "--json")
check("the failed step is tried again, with what came after it", code == 0 and did() == ["b", "cleanup"], out)
code, out = run("resume", "last", "--retry-failed")
check("a run that did not fail has nothing to retry", code == 1 and "has not failed" in out, out)
run("run", script("program", 'do_ "a"; local box = rille.rent("box", { gpu = "cpu" }) '
                  'box:exec("other", { argv = { "true" } }) '
                  'box:exec("probe", { argv = { "test", "-e", "' + root + '/there" } }); box:release(); do_ "end"'))
check("a program fails", did() == ["a"], did)
open(root + "/there", "w").close()
code, out = run("resume", "last", "--retry-failed")
check("a program that failed is run again", code == 0 and did() == ["end"], out)
run("run", script("raises", 'do_ "a"; error("in the script")'))
code, out = run("resume", "last", "--retry-failed")
check("an error of the script itself is distinguished", code == 1 and "in the script itself" in out, out)
code, out = run("resume", json.loads(run("ps", "--json")[1])[0]["id"])
check("and --retry-failed is not advised", code == 1 and "has ended: failed" in out and "--retry" not in out, out)

# --- the folder
for name in ("began", "elsewhere"):
    os.makedirs(f"{root}/{name}")
path = script("folder", f"""local box = rille.rent("box", {{ gpu = "cpu" }})
box:exec("make", {{ argv = {{ "sh", "-c", "echo made > r.txt" }} }})
rille.step("dies once", {{ retry = 5 }}, function()
  local f = io.open("{root}/died")
  if f then return f:close() and nil end
  io.open("{root}/died", "w"):close()
  os.execute("sleep 0.05; kill -9 $PPID; sleep 5")
end)
box:get("r.txt", "out/")
rille.step("write", function() rille.write("w.txt", "x") end)
return "ended" """)


def run_in(folder, *words):
    r = subprocess.run([rille, *words], env=dict(env, RILLE_HOME="../home"), capture_output=True, text=True,
                       timeout=120, cwd=f"{root}/{folder}")
    return r.returncode, r.stdout + r.stderr


run_in("began", "run", path)
os.rename(root + "/began", root + "/gone")
code, out = run_in("elsewhere", "resume", "last")
check("a run whose folder is gone says so", code == 1 and f"began in the folder '{root}/began'" in out and
      "make that folder again" in out, out)
os.rename(root + "/gone", root + "/began")
code, out = run_in("elsewhere", "resume", "last")
check("a run goes on in the folder in which it began", code == 0 and f", in {root}/began" in out and
      os.listdir(root + "/elsewhere") == [] and os.path.exists(root + "/began/out/r.txt") and
      os.path.exists(root + "/began/w.txt"), out)

# --- alive
p = subprocess.Popen([rille, "run", script("long", 'do_ "a"; print("waiting"); rille.signal("go"); return do_ '
      '"end"')], env=env,
                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
for line in p.stdout:
    if line.strip() == "waiting":
        break
code, out = run("invalidate", "last", "main/a#1")
check("not while it is alive", code == 1 and "is being run by process" in out, out)
living = show()["id"]
run("signal", living, "go")
p.communicate()
did()
run("invalidate", living, "main/go#1")
code, out = run("resume", living)
check("a signal that a forgotten entry took is there again", code == 0 and did() == ["end"], out)
check("the trail of it all is whole", run("audit")[0] == 0)

# --- a deadline that is over is forgotten with what it ended
late = script("late", '''do_ "a"
local go = rille.step("look", function() return io.open("%s/go") ~= nil end)
if not go then rille.sleep("1h") end
return "late"''' % root)
code, out = run("run", "--deadline", "200ms", late)
check("the deadline ends it", code == 124, (code, out))
open(root + "/go", "w").close()
code, out = run("invalidate", "last", "main/a#1")
check("what it ended may be gone back in", code == 0, (code, out))
code, out = run("--json", "resume", "last")
check("and the deadline is not met again", code == 0 and json.loads(out)["result"] == "late", (code, out))

shutil.rmtree(root)
finish()
