#!/usr/bin/env python3
"""Kills runs that rent from a fake provider, at random moments and with random trouble there, and resumes them. In the
end nothing that costs money may be alive, nothing may have been rented twice under one tag, and the ledger must know
every machine. usage: kill_loop.py RILLE PROVIDER [--kills N] [--seed N]"""
import argparse, json, random, signal, subprocess, sys, time
from pathlib import Path

from user import User

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("provider")
p.add_argument("--kills", type=int, default=15)
p.add_argument("--seed", type=int, default=1)
o = p.parse_args()
dice = random.Random(o.seed)
user = User(o.rille, o.provider, "--start", "0.02")
root, told, ask = user.root, user.told, user.ask
# Then it makes a group for the cluster, which the fake counts.
for name in dict(aws=("security_group", "subnet"), azure=("security_group", )).get(o.provider, ()):
    del told["settings"][name]
Path(root, "providers.json").write_text(json.dumps({o.provider: user.settings()}))
fabric = dict(aws='interconnect = "efa", ').get(o.provider, "")  # with a placement group, which is counted, too
script = root + "/rented.lua"
Path(script).write_text(f"""
local rille = require "rille"
local function work(n)
  return rille.scope("work", function()
    local box = rille.rent("w" .. n, {{ provider = "{o.provider}", cluster = "gang", {fabric}ttl = "2h",
                                       unguarded = true }})
    rille.step("use", function() return box:describe().name end)
    rille.sleep("15ms")
    return n * n
  end)
end
local sum = 0
for _, square in ipairs(rille.map("m", {{ 1, 2, 3 }}, work)) do sum = sum + square end
return sum
""")


def rille(*more):
    return user.rille(*more, timeout=300)


def run(run_id, after):
    child = subprocess.Popen([user.program, "--json", *(["resume", run_id] if run_id else ["run", script])],
                             env=user.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)
    if secrets_in(commands()):
        failures.append("a secret stands in a command line")
    try:
        out, err = child.communicate(timeout=after if after is not None else 300)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        out, err = child.communicate()
        code = None
    else:
        code = child.returncode
    user.shown.append(out + err)
    return code, out, err


def trouble():
    """What goes wrong next at the provider, if anything."""
    kind = dice.choice(["", "", "drop_after", "error_after", "throttle", "error", "drop", "capacity", "duplicates"])
    if kind:
        ask("fault", kind=kind, operation="*", times=dice.choice([1, 1, 2]))


def secrets_in(text):
    return [s for s in user.secrets if s.encode() in text]


def commands():
    """The command lines of all processes, in which no secret may stand."""
    lines = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines += file.read_bytes() + b"\n"
        except OSError:
            continue
    return lines


failures, began, kills, runs, well = [], time.time(), 0, 0, 0
try:
    while kills < o.kills and not failures:
        run_id, dead, runs = None, 0, runs + 1
        while True:
            trouble()
            after = dice.expovariate(1 / 0.25) + 0.02 if kills < o.kills and dead < 8 else None
            code, out, err = run(run_id, after)
            if code is not None:
                break
            kills, dead = kills + 1, dead + 1
            rows = json.loads(rille("ps", "--json", "-n", "1")[1] or "[]")
            newest = rows[0] if rows else None
            run_id = newest["id"] if newest and newest["state"] not in ("done", "failed", "cancelled") else None
            if not run_id:
                break
        if code is None:
            continue
        result = json.loads(out) if out else {}
        if result.get("result") == 14:
            well += 1
        elif result.get("error", {}).get("kind") not in ("capacity", "network", "quota", "timeout") and \
                "could not be released" not in out:  # for now: gc goes on with it
            failures.append(f"run {runs} ended with {code}: {out[-900:]} {err[-900:]}")
    ask("calm")
    for _ in range(60):
        rille("gc")
        if not json.loads(rille("leases", "--json")[1] or "[]") and not ask("state")["alive"]:
            break
        time.sleep(0.3)
    state = ask("state")
    if state["alive"]:
        failures.append(f"{state['alive']} things that cost money are alive: {rille('leases')[1]}")
    tags = [m["tag"] for m in state["machines"] if not m["failed"]]  # refused late, it belonged to no lease: see below
    if len(set(tags)) != len(tags):
        failures.append(f"rented twice under one tag: {sorted(t for t in tags if tags.count(t) > 1)}")
    leases = json.loads(rille("cost", "--json")[1] or "[]")
    known = [m for lease in leases for m in lease.get("machines", [])]
    names = {m["machine"].rpartition("/")[2] for m in known}
    # A machine that was refused late belonged to no lease, and cost nothing.
    missing = [m["id"] for m in state["machines"] if m["id"] not in names and not m["failed"]]
    if missing:
        failures.append(f"the ledger does not know {missing}; it knows {sorted(names)}")
    failures += [f"a secret is shown, or stands in: {place}" for place in user.leaks()]
    print(f"{o.provider}: {kills} kills, {runs} runs ({well} to their result), {len(tags)} machines, "
          f"{len(state['calls'])} calls, {time.time() - began:.0f} s")
finally:
    user.close(keep=True)
for f in failures:
    print("WRONG:", f)
if failures:
    print(f"kept: {root}; again: kill_loop.py {o.rille} {o.provider} --kills {o.kills} --seed {o.seed}")
else:
    user.remove()
sys.exit(bool(failures))
