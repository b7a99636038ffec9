#!/usr/bin/env python3
"""Kills a workflow that counts in a database (steps with effect = "tx") at random moments, and resumes it until it
ends: the counter is exactly the number of steps, and each step has the number that it made.

usage: tx_loop.py RILLE [--kills N] [--seed S]
"""
import argparse, json, os, random, shutil, sqlite3, subprocess, sys, tempfile, time

SCRIPT = """
local rille = require "rille"
local args = rille.args { steps = 30, journal = "wal" }
local tx = { effect = "tx", db = "counter.db" }
local function add(name)
  return rille.step(name, tx, function(_, ctx)
    ctx.db:exec("UPDATE counter SET n = n + 1")
    return ctx.db:query("SELECT n FROM counter")[1].n
  end)
end
local got = rille.map("adders", { 1, 2, 3 }, function()
  local mine = {}
  for i = 1, args.steps / 3 do mine[i] = add("add") end
  return mine
end)
return got
"""
p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("--kills", type=int, default=10)
p.add_argument("--seed", type=int, default=1)
options = p.parse_args()
rille = os.path.abspath(options.rille)
rng = random.Random(options.seed)
span, kills, rounds, found, steps = None, 0, 0, 0, 30

while kills < options.kills or span is None:
    root = tempfile.mkdtemp(prefix="rille-tx-")
    env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root, NO_COLOR="1")
    open(root + "/count.lua", "w").write(SCRIPT)
    db = sqlite3.connect(root + "/counter.db")
    db.executescript(f"PRAGMA journal_mode={rng.choice(['wal', 'delete'])}; CREATE TABLE counter(n);"
                     "INSERT INTO counter VALUES(0);")
    db.close()
    words, began, mine = ["run", root + "/count.lua"], time.monotonic(), 0
    while True:
        process = subprocess.Popen([rille, "--json", *words], env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        if span and mine < 6:
            try:
                process.wait(rng.uniform(0, span))
            except subprocess.TimeoutExpired:
                process.kill()
                mine += 1
        out, _ = process.communicate(timeout=60)
        if process.returncode == 0:
            break
        if process.returncode != -9:
            print(f"not ok - {words} ended with {process.returncode} (kept: {root}): {out}")
            sys.exit(1)
        shown = subprocess.run([rille, "show", "last", "--json"], env=env, capture_output=True, text=True)
        if shown.returncode == 0:
            state = json.loads(shown.stdout)
            if state["state"] == "done":
                out = json.dumps(state)
                break
            # How often the kill came between the two commits: a row here, and no entry there.
            done = sum(e["kind"] == "step" and e["state"] == "done" for e in state["entries"])
            db = sqlite3.connect(root + "/counter.db")
            found += db.execute("SELECT n FROM counter").fetchone()[0] > done
            db.close()
            words = ["resume", "last"]
    kills += mine
    if span is None:
        span = time.monotonic() - began
    else:
        rounds += 1
    numbers = sorted(n for part in json.loads(out)["result"] for n in part)
    db = sqlite3.connect(root + "/counter.db")
    n = db.execute("SELECT n FROM counter").fetchone()[0]
    rows = db.execute("SELECT count(*) FROM rille_steps").fetchone()[0]
    db.close()
    if n != steps or rows != steps or numbers != list(range(1, steps + 1)):
        print(f"not ok - counter {n}, rows {rows}, results {numbers} (kept: {root})")
        sys.exit(1)
    shutil.rmtree(root)
print(f"ok - {rounds} rounds, {kills} kills, each counter exactly {steps}; {found} kills fell between the two commits")
