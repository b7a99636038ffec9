#!/usr/bin/env python3
"""Runs that a script starts: results, errors, kills, Ctrl-C, suspension. usage: children_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile, time

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-children-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words, timeout=60):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=timeout, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def begin(path, word):
    """A run, once it has printed the word."""
    p = subprocess.Popen([rille, "run", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         cwd=root)
    for line in p.stdout:
        if line.strip() == word:
            return p
    raise AssertionError(p.stderr.read())


def end(p):
    out, err = p.communicate(timeout=60)
    return p.returncode, out + err


def all_runs():
    return json.loads(run("ps", "--all", "--json")[1])


def leases():
    return json.loads(run("leases", "--json")[1])


def effects():
    path = root + "/effects"
    text = open(path).read().split() if os.path.exists(path) else []
    return sorted(text)


script("square", """
local args = rille.args { n = 1 }
return { square = rille.step("square", function() return args.n * args.n end), id = rille.run_id }""")
script("fails", 'rille.error { kind = "quota", message = "no more of it", hint = "wait" }')
script("works", f"""
local args = rille.args {{ name = "x", wait = "20s" }}
local box = rille.rent("box", {{ gpu = "cpu" }})
rille.step("effect", function()
  local f = io.open("{root}/effects", "a"); f:write(args.name, "\\n"); f:close()
end)
print("at work")
rille.sleep(args.wait)
return args.name""")

try:
    path = script("sums", """
local sum = 0
local all = rille.map("part", { 1, 2, 3, 4 }, { limit = 2 }, function(n) return rille.run("square.lua", { n = n }) end)
for _, part in ipairs(all) do sum = sum + part.square end
return { sum = sum, first = all[1].id }""")
    code, out = run("--json", "run", path)
    result = json.loads(out)["result"]
    check("children give their results", code == 0 and result["sum"] == 30, out)
    parent = json.loads(out)["run"]
    check("their ids begin with the parent's", result["first"].startswith(parent + ".square-"), result)
    check("`ps` shows the parent only", [r["id"] for r in json.loads(run("ps", "--json")[1])] == [parent])
    check("`ps --all` shows all", len(all_runs()) == 5)
    code, out = run("show", "last")
    check("`last` is the parent, and `show` lists its children", out.count("square.lua") >= 4 and parent in out, out)

    code, out = run("run", script("bad", 'rille.run("fails.lua")'))
    check("a child's error is the parent's, with its kind and its run",
          code == 1 and "quota" in out and "'fails.lua' failed: no more of it" in out and "hint: wait" in out, out)
    script("forged", 'rille.error { kind = "state", code = "run_paused", message = "made up" }')
    code, out = run("run", script("believes", 'rille.run("forged.lua")'))
    check("a child that says that it is paused, but has failed, fails its parent",
          code == 1 and "made up" in out and [r["state"] for r in all_runs()[:2]] == ["failed"] * 2, out)
    code, out = run("run", script("typo", 'print(pcall(rille.run, "nothere.lua"))'))
    check("a file that is not there is named", code == 0 and "nothere.lua" in out, out)
    code, out = run("run", script("instep", 'rille.step("s", function() rille.run("square.lua") end)'))
    check("not in a step", code == 1 and "step" in out, out)
    code, out = run("run", script("ids", """
local a = rille.run("square.lua", { n = 2 }, { id = "one" })
local b = rille.run("square.lua", { n = 2 }, { id = "one" })
assert(a.id == "one" and b.square == 4)
print(pcall(rille.run, "square.lua", { n = 3 }, { id = "one" }))
print(pcall(rille.run, "square.lua", {}, { id = "../one" }))"""))
    check("an id names one run for ever", code == 0 and "other arguments" in out and "cannot be the id" in out, out)

    # Killed while the child works; resumed, the child goes on where it was.
    path = script("outer", """
local r = rille.run("works.lua", { name = "killed", wait = "1s" })
print("got", r)""")
    p = begin(path, "at work")
    p.kill()
    p.wait()
    check("a killed parent leaves both unfinished",
          [r["state"] for r in all_runs()[:2]] == ["interrupted"] * 2, all_runs()[:2])
    code, out = run("resume", "last")
    check("resumed, the child goes on", code == 0 and "got\tkilled" in out, out)
    check("its step did not run again", effects() == ["killed"], effects())
    check("nothing is rented", leases() == [])

    p = begin(path, "at work")
    p.kill()
    p.wait()
    code, out = run("gc")
    check("what the child of a killed run holds is kept for its resumption", code == 0 and len(leases()) == 1, out)
    code, out = run("gc", "--now", "last")
    check("gc --now of the parent ends it, too", code == 0 and "released" in out and leases() == [], out)

    p = begin(path, "at work")
    p.send_signal(signal.SIGTERM)
    end(p)
    check("suspended, both are", [r["state"] for r in all_runs()[:2]] == ["suspended"] * 2, all_runs()[:2])
    code, out = run("resume", "last")
    check("and both go on", code == 0 and "got\tkilled" in out and leases() == [], out)

    # Ctrl-C
    path = script("long", 'rille.run("works.lua", { name = "long" })')
    p = begin(path, "at work")
    p.send_signal(signal.SIGINT)
    code, out = end(p)
    check("Ctrl-C ends the child, which releases", code == 130 and "released box" in out and leases() == [], out)
    check("both are cancelled", [r["state"] for r in all_runs()[:2]] == ["cancelled"] * 2, all_runs()[:2])
    script("spins", 'rille.rent("box", { gpu = "cpu" })\nprint("at work")\nwhile true do end')
    p = begin(script("spinner", 'rille.run("spins.lua")'), "at work")
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    code, out = end(p)
    check("also one that computes for ever", code == 130 and leases() == [], out)
    script("stubborn", """
rille.defer(function() rille.sleep("1h") end)
rille.rent("box", { gpu = "cpu" })
print("at work")
rille.sleep("1h")""")
    p = begin(script("outer2", 'rille.run("stubborn.lua")'), "at work")
    p.send_signal(signal.SIGINT)
    while "interrupted: cleaning up" not in p.stderr.readline():
        pass
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    code, out = end(p)
    check("Ctrl-C twice releases what the child holds", code == 130 and leases() == [], out)
    check("both are cancelled then, too", [r["state"] for r in all_runs()[:2]] == ["cancelled"] * 2, all_runs()[:2])

    # A race: the loser's run ends with it.
    path = script("racing", """
local winner = rille.race {
  quick = function() rille.sleep("300ms"); return "quick" end,
  slow = function() return rille.run("works.lua", { name = "loser" }) end,
}
return winner""")
    code, out = run("run", path)
    check("a lost race ends its run", code == 0 and leases() == [] and all_runs()[0]["state"] == "cancelled", out)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
