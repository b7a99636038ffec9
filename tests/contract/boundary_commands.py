#!/usr/bin/env python3
"""As boundary_kills.py, where a provider is reached by commands: a real sshd, a real Slurm. Kills a runner at its first
boundary (boundary.c: a commit, a command that was started, one that has ended), resumes it, then at its second, and so
on until one ends before it is killed. It rents a machine, makes a call there and releases it. After each: the result
is right; no job is in the queue, no folder and no process on a host; nothing was rented twice under one tag.

usage: boundary_commands.py RILLE BOUNDARY_SO ssh|slurm [--every K] [--first N]"""
import argparse, collections, json, os, shutil, signal, sqlite3, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "workflows")]
import need
from places import PLACES

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("shim")
p.add_argument("place")
p.add_argument("--every", type=int, default=1, help="only each K-th boundary")
p.add_argument("--first", type=int, default=1)
o = p.parse_args()
need.met(PLACES[o.place].missing)
NAMES = dict(c="commit", x="command", e="end of a command")
SCRIPT = """local rille = require "rille"
local box = rille.rent("box", { provider = "%s", gpu = "%s", ttl = "20m", gpu_check = false })
local sum = box:call("sum", { args = 20 }, function(n) return n + 22 end)
box:release()
return sum
"""
GPU = dict(ssh="cpu", slurm="H100:1")
root = tempfile.mkdtemp(prefix="rille-boundary-")
log, failures, killed, resumed, began = Path(root, "boundaries"), [], collections.Counter(), 0, time.time()


def rille(place, *words, **more):
    r = subprocess.run([os.path.abspath(o.rille), *words], env=dict(place.env, **more), capture_output=True, text=True,
                       timeout=300, cwd=root)
    return r.returncode, r.stdout, r.stderr


def newest(place):
    rows = json.loads(rille(place, "ps", "--json", "-n", "1")[1] or "[]")
    return (rows[0]["id"], rows[0]["state"]) if rows else ("", "")


def check_end(place, where, machines):
    """A folder may outlive its job by the moment that its script takes; nothing may outlive that."""
    end = time.monotonic() + 30
    while time.monotonic() < end and place.alive():
        time.sleep(0.05)
    if place.alive():
        failures.append(f"{where}: alive: {place.alive()}")
    leases = rille(place, "leases", "--json")[1].strip()
    if leases not in ("", "[]"):
        failures.append(f"{where}: leased: {leases}")
    try:
        with sqlite3.connect(f"file:{root}/home/journal.db?mode=ro", uri=True) as db:
            twice = db.execute("SELECT lease,generation FROM machines GROUP BY 1,2 HAVING COUNT(*)>1").fetchall()
            made = db.execute("SELECT COUNT(*) FROM machines").fetchone()[0]
    except sqlite3.OperationalError:  # it was killed before there was a journal
        twice, made = [], 0
    if twice or made > machines + 1:
        failures.append(f"{where}: {made - machines} machines for one rent; twice: {twice}")
    if o.place == "slurm":
        tags = place.cluster.run("squeue", "-h", "-t", "all", "-O", "Name:200").split()
        if len(set(tags)) != len(tags):
            failures.append(f"{where}: sent twice under one tag: {sorted(t for t in tags if tags.count(t) > 1)}")
    return made


def one(place, n, machines, only=""):
    """(whether it had an n-th boundary, or an n-th of that letter; how many machines there have been)"""
    global resumed
    before = newest(place)
    log.unlink(missing_ok=True)
    shim = dict(LD_PRELOAD=os.path.abspath(o.shim), BOUNDARY_COMMANDS="1", BOUNDARY_KILL=str(n), BOUNDARY_LOG=str(log),
                BOUNDARY_ONLY=only)
    code, out, err = rille(place, "--json", "run", root + "/flow.lua", **shim)
    letters = log.read_text() if log.exists() else ""
    where = f"boundary {n} ({NAMES.get(letters[-1:], '?')})"
    if code != -signal.SIGKILL:
        if code != 0 or (letters.count(only) if only else len(letters)) >= n:
            failures.append(f"{where}: ended with {code}: {out[-900:]} {err[-900:]}")
        return False, check_end(place, "not killed", machines)
    killed[NAMES[letters[-1]]] += 1
    id, state = newest(place)
    if (id, state) != before and state not in ("done", "failed", "cancelled"):
        resumed += 1
        code, out, err = rille(place, "--json", "resume", id)
        result = json.loads(out).get("result") if out else None
        if code != 0 or result != 42:
            failures.append(f"{where}: resumed with {code}: {out[-900:]} {err[-900:]}")
    elif id != before[0] and state != "done":
        failures.append(f"{where}: the run is {state}")
    return True, check_end(place, where, machines)


try:
    Path(root, "flow.lua").write_text(SCRIPT % (o.place, GPU[o.place]))
    with PLACES[o.place](root) as place:
        # How long a command that was sent may still take effect: here, on one machine, seconds.
        settings = dict(place.settings(), traits=dict(create_timeout_ms=3_000, visibility_lag_ms=300))
        Path(root, "providers.json").write_text(json.dumps({o.place: settings}))
        place.env.update(RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1",
                         RILLE_PROVIDERS=root + "/providers.json")
        n, machines, more = o.first, 0, True
        while not failures and more:
            more, machines = one(place, n, machines)
            n += o.every if more else 0
        for letter, name in NAMES.items():  # what each K-th has passed over
            if not failures and not killed[name]:
                _, machines = one(place, 1, machines, letter)
        never = sorted(set(NAMES.values()) - set(killed))
        if never and not failures:
            failures.append(f"never killed at: {', '.join(never)}: does {o.shim} see them?")
        print(f"{o.place}: killed at {sum(killed.values())} of {n} boundaries ({dict(killed)}), {resumed} resumed, "
              f"{machines} machines, {time.time() - began:.0f} s")
finally:
    for f in failures[:5]:
        print("WRONG:", f)
    if failures:
        print("kept:", root)
    else:
        shutil.rmtree(root, ignore_errors=True)
sys.exit(bool(failures))
