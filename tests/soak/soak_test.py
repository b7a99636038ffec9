#!/usr/bin/env python3
"""Runs soak.lua in a home of its own; and with a leak planted, which it must find.
usage: soak_test.py RILLE --seconds 20 .."""
import os, shutil, subprocess, sys, tempfile

rille, script = os.path.abspath(sys.argv[1]), os.path.dirname(os.path.abspath(__file__)) + "/soak.lua"
home = tempfile.mkdtemp(prefix="rille-soak-")
env = dict(os.environ, RILLE_HOME=home + "/home", XDG_CONFIG_HOME=home, NO_COLOR="1")


def run(*words):
    return subprocess.run([rille, "run", script, *words], env=env, cwd=home, capture_output=True, text=True)


try:
    r = run(*sys.argv[2:])
    print("\n".join(line for line in r.stdout.splitlines() if not line.startswith("checkpoint")))
    assert r.returncode == 0, r.stderr
    r = run("--seconds", "1", "--sizes", "1", "--rounds", "12", "--leak")
    assert r.returncode == 1 and "more than after a quarter" in r.stderr, r.stdout + r.stderr
finally:
    shutil.rmtree(home, ignore_errors=True)
print("ok")
