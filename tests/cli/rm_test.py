#!/usr/bin/env python3
"""Runs that are removed from the list, and the list by state; completion in a shell. usage: rm_test.py RILLE"""
import json, os, shutil, signal, sqlite3, subprocess, sys, tempfile

import need
from tap import check, finish

need.met(lambda: "" if shutil.which("zsh") and shutil.which("fish") else
         "zsh or fish not found: apt-get install --no-install-recommends zsh fish")
rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-rm-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
           PATH=os.path.dirname(rille) + ":" + os.environ["PATH"])


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr


def ids(*words):
    return [row["id"] for row in json.loads(run("ps", "--json", *words)[1])]


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{name}.lua"


def completed(*words):
    """What bash offers for the last of these words."""
    text = f"""source <(rille completion bash)
COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}
_rille; printf '%s\\n' "${{COMPREPLY[@]}}" """
    r = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.stdout.split() if not r.stderr else r.stderr


try:
    run("run", script("rents", 'local box = rille.rent("box", { gpu = "cpu" })\n'
                      'rille.step("big", function() return ("x"):rep(200000) end)\nreturn 1'))
    done = ids()[0]
    run("run", script("child", 'return rille.run("rents.lua", {})'))
    parent, child = ids()[0], [i for i in ids("--all") if i not in ids()][0]
    run("run", script("fails", 'error("on purpose")'))
    failed = ids()[0]
    p = subprocess.Popen([rille, "run", script("waits", 'rille.rent("held", { gpu = "cpu" })\nprint("ready")\n'
                                               'rille.sleep("1h")')], env=env, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL, cwd=root)
    assert p.stdout.readline() == "ready\n"
    alive = ids()[0]

    check("ps --state", ids("--state", "done") == [parent, done] and ids("--state", "failed") == [failed] and
          ids("--state", "running") == [alive] and ids("--state", "done", "-n", "1") == [parent])
    check("none in that state", "no run is cleanup" in run("ps", "--state", "cleanup")[1])
    code, out = run("ps", "--state", "dnoe")
    check("a state that there is not", code == 2, out)

    code, out = run("rm", alive)
    check("a living run is refused", code == 1 and "has not ended: it is running" in out and
          f"rille cancel {alive}" in out, out)
    p.send_signal(signal.SIGTERM)
    p.wait(timeout=30)
    code, out = run("rm", alive)
    check("so is a suspended one", code == 1 and "has not ended: it is suspended" in out, out)
    code, out = run("rm", child)
    check("and one that a script has started", code == 1 and f"rille rm {parent}" in out, out)

    def values():
        return [n for _, _, names in os.walk(home + "/blobs") for n in names]

    held = values()
    check("two runs have one large value in common", len(held) == 1, held)
    left = f"{home}/blobs/{held[0][:2]}/{held[0]}.tmp-0123456789ab"  # by one that was killed while it wrote
    open(left, "w").write("x")
    cost = run("cost", done)
    code, out = run("rm", done)
    check("an ended run is removed", code == 0 and f"removed {done}" in out and done not in ids(), out)
    check("with its files", not os.path.exists(f"{home}/runs/{done}"))
    check("and not the value that another has, too", values() == held, values())
    check("what it cost is kept", run("cost", done) == cost and "box" in cost[1], run("cost", done))
    code, out = run("audit")
    check("and so is the trail", code == 0, out)
    for words in (["resume", done], ["signal", done, "x"], ["rm", done]):
        code, out = run(*words)
        check(f"{words[0]} of it says so", code == 1 and "has been removed" in out, out)
    code, out = run("rm", parent, failed)
    check("several at once, with what they have started", code == 0 and ids() == [alive] and
          not os.path.exists(f"{home}/runs/{child}"), out)
    check("nor have they left anything", values() == [], values())
    code, out = run("rm", "nothing")
    check("a run that is not there", code == 1 and "there is no run 'nothing'" in out, out)

    check("completion of a command", completed("rille", "sus") == ["suspend"], completed("rille", "sus"))
    check("of a script", completed("rille", "fai") == ["fails.lua"], completed("rille", "fai"))
    check("of an option", completed("rille", "ps", "--st") == ["--state"], completed("rille", "ps", "--st"))
    check("of a run", completed("rille", "show", alive[:9]) == [alive], completed("rille", "show", alive[:9]))
    lease = json.loads(run("leases", "--json")[1])[0]["id"]
    check("of a lease", completed("rille", "release", lease[:3]) == [lease], completed("rille", "release", lease[:3]))
    for shell in ("zsh", "fish"):
        code, out = run("completion", shell)
        check(f"{shell}: commands and options are in it", code == 0 and "suspend" in out and "state" in out, out)
        got = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True)
        check(f"which {shell} can read", got.returncode == 0, got.stderr)
    check("a shell that we do not know", run("completion", "tcsh")[0] == 2)
    victim = os.path.join(root, "victim")
    os.mkdir(victim)
    outside = os.path.relpath(victim, home + "/runs")
    run("run", script("ends", "return 1"))
    with sqlite3.connect(home + "/journal.db") as db:  # as an untrusted home that was passed on may contain
        db.execute("update runs set id = ? where id = ?", (outside, ids()[0]))
    db.close()
    code, out = run("rm", outside)
    check("an id that leads out of the home", code == 1 and "cannot be the id of a run" in out, out)
    check("removes nothing there", os.path.isdir(victim))
    os.makedirs(f"{root}/elsewhere")
    open(f"{root}/elsewhere/important", "w").close()
    shutil.rmtree(home + "/blobs", ignore_errors=True)
    os.symlink(root + "/elsewhere", home + "/blobs")
    run("run", script("last", "return 1"))
    code, out = run("rm", ids("-n", "1")[0])
    check("where blobs is a link, nothing is removed", "is a link" in out and
          os.path.exists(f"{root}/elsewhere/important"), (code, out))
finally:
    run("gc", "--now", alive)
    shutil.rmtree(root)
finish()
