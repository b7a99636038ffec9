#!/usr/bin/env python3
"""What ends a lease when its run does not: `rille gc`, the reaper beside another run, and nothing while the run lives.
usage: lease_test.py RILLE"""
import glob, json, os, shutil, signal, sqlite3, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-lease-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


def leases():
    return json.loads(run("leases", "--json")[1])


def instances():
    return glob.glob(home + "/instances/i-*")


def begin(options):
    """A run that has rented and waits; the process, once it does."""
    path = script("waits", f'local box = rille.rent("box", {options})\nprint("ready")\nrille.sleep("1h")')
    p = subprocess.Popen([rille, "run", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         cwd=root)
    assert p.stdout.readline() == "ready\n"
    return p


def suspended(options):
    p = begin(options)
    p.send_signal(signal.SIGTERM)
    p.wait(timeout=30)
    return json.loads(run("ps", "--json")[1])[0]["id"]


calm = script("calm", 'print("calm")')
try:
    code, out = run("run", calm)
    check("nothing rented: nothing is said", code == 0 and "released" not in out, out)

    p = begin('{ gpu = "cpu" }')
    alive = json.loads(run("ps", "--json")[1])[0]["id"]
    code, out = run("run", calm)
    check("a living run's lease is not touched by another run", code == 0 and len(leases()) == 1 and
          "left by" not in out, out)
    code, out = run("gc")
    check("nor by gc", code == 0 and "nothing to clean up" in out and len(leases()) == 1, out)
    code, out = run("gc", "--now", alive)
    check("nor by gc --now, which says why", code == 1 and "is being run by process" in out and len(leases()) == 1, out)
    p.send_signal(signal.SIGTERM)
    p.wait(timeout=30)

    code, out = run("gc")
    check("a suspended run's lease is held, and shown until when", code == 0 and len(leases()) == 1 and
          "its run is suspended; until 20" in out and "in 11h59m" in out and "gc --now" in out, out)
    check("rille leases shows that end, too", "11h59m" in run("leases")[1])
    code, out = run("gc", "--json")
    held = json.loads(out)["held"]
    check("in JSON, too", len(held) == 1 and held[0]["run"] == alive and held[0]["why"] == "its run is suspended", out)
    code, out = run("run", calm)
    check("another run leaves it", code == 0 and len(leases()) == 1, out)
    code, out = run("gc", "--now", alive)
    check("gc --now ends it", code == 0 and "released" in out and not leases() and not instances(), out)

    code, out = run("run", script("twice", """local box = rille.rent("box", { gpu = "cpu" })
local ok, err = pcall(rille.rent, "box", { gpu = "cpu" })
print(ok, err.kind, err.code, err.message)
box:release()
print(rille.rent("box", { gpu = "cpu" }).state)
rille.map("each", { 1, 2 }, function() return rille.rent("box", { gpu = "cpu" }).state end)
rille.scope("inner", function() print(pcall(rille.rent, "box", { gpu = "cpu" })) end)
local kept = rille.rent("kept", { gpu = "cpu" })
kept:detach("1m")
print(select(2, pcall(rille.rent, "kept", { gpu = "cpu" })).code)"""))
    check("a name is one lease's while that lives, and the error has its line", code == 0 and
          "false\tstate\tname_taken\t'box' is rented already, at twice.lua:2\nlive\n" in out and
          "is rented already, at twice.lua:6" in out, out)
    check("but fibers have names of their own, and what is detached keeps its name", out.count("live\n") == 1 and
          "name_detached\n" in out and len(leases()) == 1, out)
    run("release", leases()[0]["id"])

    os.makedirs(root + "/folder/sub")
    for name in ("one.txt", "folder/a.txt", "folder/sub/b.txt"):
        open(f"{root}/{name}", "w").write(name)
    code, out = run("run", script("slash", f"""local box = rille.rent("box", {{ gpu = "cpu" }})
box:stage("{root}/one.txt", "data/")
box:stage("{root}/folder", "whole/")
box:stage("{root}/folder/", "again")
box:stage("file://{root}/one.txt", "web/")
local read = function(path) local f = assert(io.open(path)) local text = f:read("*a") f:close() return text end
print(box:call("read", {{ args = {{ "data/one.txt", "whole/sub/b.txt", "again/a.txt", "web/one.txt" }} }},
  function(paths) local out = {{}} for i, p in ipairs(paths) do out[i] = read(p) end return table.concat(out, " ") end))
box:get("data/one.txt", "{root}/back/")
box:get("whole", "{root}/back/whole/")
local ok, err = pcall(box.get, box, "nothing", "{root}/x")
print(err.kind, err.message)"""))
    check("a name with a slash at its end is a folder", code == 0 and
          "one.txt folder/sub/b.txt folder/a.txt one.txt\n" in out, out)
    check("also for what comes back", open(root + "/back/one.txt").read() == "one.txt" and
          open(root + "/back/whole/a.txt").read() == "folder/a.txt" and not glob.glob(root + "/back/.*"), out)
    check("a file that is not there", "io\tthere is no 'nothing' on the instance" in out, out)

    run_id = suspended('{ gpu = "cpu", hold_ttl = "1ms" }')
    code, out = run("run", calm)
    check("when the hold is over, the next run ends it in passing", code == 0 and "calm" in out and
          f"left by run {run_id}" in out and not leases() and not instances(), out)

    p = begin('{ gpu = "cpu" }')
    p.kill()
    p.wait()
    code, out = run("gc")
    check("a killed run's lease waits for its resumption", code == 0 and "was interrupted and can be resumed" in out and
          len(leases()) == 1, out)
    box = instances()[0]
    shutil.copytree(box, root + "/copy", symlinks=True)
    check("and ends when asked", run("gc", "--now", "last")[0] == 0 and not leases() and not instances())
    shutil.move(root + "/copy", box)
    code, out = run("gc")
    check("a machine that lives although it was released is ended and reported", code == 0 and "was alive" in out and
          "released" in out and not instances() and not leases(), out)

    # The rows of leases cannot be written any more: as on a full disk, but for this table alone.
    def journal(sql):
        with sqlite3.connect(home + "/journal.db", timeout=30) as db:
            db.execute(sql)

    path = script("full", 'rille.rent("box", { gpu = "cpu" })\nprint("ready")\nrille.signal("go")\n')
    p = subprocess.Popen([rille, "run", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         cwd=root)
    while p.stdout.readline() != "ready\n":
        pass
    journal("CREATE TRIGGER full BEFORE UPDATE ON leases BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
    run("signal", "last", "go")
    out = p.communicate(timeout=60)[0]
    check("a journal that cannot be written does not keep a machine alive", p.returncode == 3 and not instances() and
          "has ended, but that could not be recorded" in out and len(leases()) == 1, out)
    code, out = run("gc")
    check("gc says so as long as it cannot be written", code == 3 and "NOT released" in out, out)
    journal("DROP TRIGGER full")
    code, out = run("gc")
    check("and corrects the record afterwards", code == 0 and "released" in out and not leases(), out)

    path = script("detached", """local box = rille.rent("server", { gpu = "cpu", ttl = "2h" })
print(select(2, pcall(box.detach, box, "3h")).message)
rille.scope(function() box:detach("1h") end)
rille.signal("go")""")
    p = subprocess.Popen([rille, "run", path], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         cwd=root)
    said = p.stdout.readline()
    check("a lease is not detached for longer than it was rented", "cannot be detached for 3h" in said, said)
    while not any(l.get("detached") for l in leases()):
        pass
    p.kill()
    p.wait()
    run("signal", "last", "go")
    code, out = run("resume", "last")
    check("a detached lease outlives its run, also one that was killed and resumed", code == 0 and
          len(instances()) == 1, out)
    code, out = run("leases")
    check("rille leases shows it and its end", "detached" in out and ("59m" in out or "1h" in out), out)
    code, out = run("gc")
    check("gc leaves it until then", code == 0 and "detached" in out and len(leases()) == 1, out)
    journal("UPDATE leases SET expires_us=1 WHERE state='live'")
    code, out = run("gc")
    check("and ends it after", code == 0 and not leases() and not instances(), out)

    for option, said in [("detach = true", "no option 'detach' yet"), ('disk = "10GB"', "with such a disk"),
                         ('container = "x"', "no option 'container' yet"), ("ttll = 1", "did you mean ttl")]:
        code, out = run("run", script("wrong", f'rille.rent("b", {{ gpu = "cpu", {option} }})'))
        check(f"rent refuses {option}", code == 1 and said in out, out)
    for option, said in [('gpu = "A100"', "local has no way to make a machine another type"),
                         ('type = "big"', "local has no way"), ('tpye = "big"', "did you mean type?"),
                         ("max_price = 1", "the new size of the machine"), ('gpu = "cpu"', "it is as it was: live")]:
        code, out = run("run", script("resize", 'local box = rille.rent("b", { gpu = "cpu" })\n' +
                                      f'box:resize {{ {option} }}\nprint("it is as it was: " .. box.state)'))
        check(f"box:resize {{ {option} }}", code == ("live" not in said) and said in out, out)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
