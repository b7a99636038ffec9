#!/usr/bin/env python3
"""workflows/spot_training.lua, unchanged, here on this machine and on the simulated cloud.
usage: spot_training_test.py RILLE SCRIPT"""
import json, os, shutil, subprocess, sys, tempfile

rille, script = map(os.path.abspath, sys.argv[1:3])
root = tempfile.mkdtemp(prefix="rille-spot-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=200, cwd=root)
    return r.returncode, r.stdout, r.stderr


open(root + "/text", "w").write("the quick brown fox jumps over the lazy dog. " * 400)
code, out, err = run("run", script, "--gpu", "any", "--steps", "20", "--data", root + "/text")
assert code == 0 and "checkpoint in out/" in out and os.listdir(root + "/out"), out + err
code, out, err = run("simulate", script, "-n", "50", "--gpu", "T4", "--hours", "1", "--json")
data = json.loads(out)
assert data["ended_well"] > 30, out + err
assert 3600 <= data["seconds"]["p50"] < 2 * 3600 and data["cost"]["p50"] < 1, data
code, out, err = run("plan", script)
assert code == 0 and "H100" in out and ":spot" in out and "list price of" in out, out + err
shutil.rmtree(root)
print("ok")
