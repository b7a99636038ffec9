#!/usr/bin/env python3
"""Interrupts a running workflow with Ctrl-C, and then kills, hangs up or interrupts again at random moments of its
cleanup; resumes it until it ends. Then: it ended as cancelled (or as done, when the signal came too late), it was never
accused of divergence, no finished step of the cleanup ran again, no lease and no process of the home is left.

usage: cancel_loop.py RILLE SCRIPT [--rounds N] [--seed S]
"""
import argparse, collections, os, random, shutil, signal, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kill_loop import Round

SECOND = [None, signal.SIGKILL, signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT]
ENDED = ("done", "failed", "cancelled")


def state(r):
    return (r.query("show", "last") or {}).get("state")


def strike(process, number, rng, span):
    """Sends the signal after a random time, unless the process ends before. True: it was sent."""
    try:
        process.wait(timeout=rng.uniform(0.0, span))
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        return True


def play(options, number, rng, span, seen):
    r = Round(options, number)
    process = r.start("run")
    hit = strike(process, signal.SIGINT, rng, 0.8 * span)
    for attempt in range(8):
        second = rng.choice(SECOND) if hit and attempt < 5 else None
        if second is not None:
            strike(process, second, rng, 0.1)
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            r.fail("did not end in time")
        seen[f"exit {code}"] += 1
        if code not in (0, 130, 128 + signal.SIGHUP, 128 + signal.SIGTERM, -signal.SIGKILL, -signal.SIGHUP,
                        -signal.SIGTERM, -signal.SIGINT):
            r.fail(f"exit code {code}")
        if not r.query("ps"):
            process = r.start("run")
            continue
        if state(r) in ENDED:
            break
        done = {(e["fiber"], e["name"], e["occurrence"]) for e in r.query("show", "last").get("entries", [])
                if e["kind"] == "step" and e["state"] == "done"}
        counts = r.counts()
        process = r.start("resume", "last")
        r.finished = getattr(r, "finished", {})
        for fiber, name, n in done:
            effect = {"clean side": "clean-side", "add": f"add{n}",
                      "clean outer": "clean-outer" if n == 1 else "clean-outer-again"}[name]
            r.finished.setdefault(effect, counts[effect])
    else:
        r.fail("never ended")
    final = state(r)
    seen[final] += 1
    if final == "failed":
        r.fail("the run failed")
    for effect, n in getattr(r, "finished", {}).items():
        if r.counts()[effect] != n:
            r.fail(f"the finished step that leaves {effect} ran again")
    if leases := r.query("leases"):
        r.fail(f"leases are left: {leases}")
    for _ in range(100):
        left = r.processes()
        if not left:
            break
        time.sleep(0.02)
    else:
        r.fail(f"processes are left: {left}")
    shutil.rmtree(r.home, ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("rille")
    p.add_argument("script")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    options.rille, options.script = os.path.abspath(options.rille), os.path.abspath(options.script)
    options.args, options.effects = "", True
    rng = random.Random(options.seed)
    seen = collections.Counter()
    began = time.monotonic()
    calm = Round(options, 0)
    if calm.start("run").wait(timeout=60) != 0:
        calm.fail("the undisturbed run failed")
    span = time.monotonic() - began
    shutil.rmtree(calm.home, ignore_errors=True)
    for i in range(1, options.rounds + 1):
        play(options, i, rng, span, seen)
    if options.rounds >= 50 and not (seen["cancelled"] > options.rounds / 2 and seen["exit -9"] > 5):
        print(f"not ok - the loop did not reach what it is for: {dict(seen)}")
        sys.exit(1)
    print(f"ok - {options.rounds} rounds, {dict(sorted(seen.items()))}, 0 leases left, 0 processes left")


if __name__ == "__main__":
    main()
