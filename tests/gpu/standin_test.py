#!/usr/bin/env python3
"""The checks of tests/gpu/run themselves, on a GPU that the stand-in driver plays: each runs as it would on a real one,
in its twin's size, and gives the figures that the goals ask for. usage: standin_test.py RILLE LAUNCH_FLOOR
RILLE_CUDA_DRIVER, RILLE_CUDA_PLUGIN and RILLE_CUDA_PATH name the stand-ins."""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True
here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
import checks, harness
from tap import check, finish

rille, floor = (os.path.abspath(word) for word in sys.argv[1:3])
scratch = tempfile.TemporaryDirectory(prefix="rille-gpu-standin-")
env = dict(os.environ, RILLE_HOME=scratch.name + "/home", XDG_CONFIG_HOME=scratch.name, NO_COLOR="1")
TINY = {"--layers": 1, "--width": 32, "--heads": 2, "--context": 16, "--peak": 1}
# The quickstart is run by the harness, twice: on that GPU and on the CPU. The other workflows: gpu.standin.NAME.
bundle = Path(scratch.name, "bundle")
(bundle / "bin").mkdir(parents=True)
(bundle / "bin/rille").symlink_to(rille)
(bundle / "workflows").symlink_to(here.parents[1] / "workflows")
shutil.copy(here.parents[1] / "LICENSE", bundle)
quick = next(one for one in checks.CHECKS if one.name == "quickstart")
runner = harness.Runner(bundle, scratch.name, 280)
told = runner.check(quick, quick.cpu, 270, {"bundle": str(bundle), "scratch": scratch.name}, "cuda:0")
# Of the checks in full size those whose figures are held to a formula or a picture, in their twins' size.
filled = {"bundle": str(bundle), "scratch": scratch.name, "ids": scratch.name + "/ids.bin"}
for one in checks.CHECKS:
    if one.spare and one.name.split()[-1] in ("nbody", "heat_fft", "raytrace"):
        full = runner.check(one, one.cpu, 100, filled, "cuda:0")
        rate = [f for f in full.get("figures", []) if f["name"] == "rate" and f["unit"].endswith("/s")]
        check(f"{one.name}: what has to be right is, and it tells its rate", full["status"] == "ran" and rate, full)
runner.end_agents()
check("the quickstart's losses are the CPU's", told["status"] == "ran" and
      any(f["name"] == "largest difference of 20 losses to the CPU's" for f in told["figures"]), told)
SMALLER = {"gpt2.lua": TINY,
           "launch.lua": {"--launches": 20, "--replays": 2, "--image": scratch.name + "/image"},
           "streams.lua": {"--turns": 200, "--rounds": 1},
           "training.lua": {"--steps": 10, "--again": 5, "--width": 32},
           "training bf16": {"--steps": 3, "--again": 2, "--width": 128, "--layers": 1, "--batch": 1, "--context": 24},
           "operations in half types": {"--dtypes": "bf16"},
           "gradients bf16, 4 layers": {"--context": 24},
           "gradients bf16, heads of 64": {"--context": 24}, "gradients bf16, heads of 128": {"--context": 24}}
figures = {}
for one in checks.CHECKS:
    if one.script.endswith(".py") or one.script.startswith("workflows/"):
        continue
    given = dict(zip(one.cpu[::2], one.cpu[1::2])) if one.cpu else {}
    options = {**given, **SMALLER.get(one.script, {}), **SMALLER.get(one.name, {}), "--device": "cuda:0"}
    words = [rille, "--json", "run", str(here / one.script), *(str(w) for pair in options.items() for w in pair)]
    if one.script.endswith(".cpp"):
        words = [floor, scratch.name + "/image", "nothing", "10"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, cwd=scratch.name)
    try:
        figures[one.name] = {f["name"]: f["value"] for f in json.loads(done.stdout)["result"]["figures"]}
    except (ValueError, KeyError, TypeError):
        figures[one.name] = {}
    check(f"{one.name} runs and gives figures", done.returncode == 0 and figures[one.name], done.stdout + done.stderr)
for goal in checks.GOALS:
    for name in filter(None, (goal.check, goal.of, goal.beyond)):
        if name in figures:
            check(f"{name} gives what a goal asks for: {goal.figure}", goal.figure in figures[name], figures[name])
for name in ("Lua memory of a launch", "Lua memory of a replay"):
    check(f"{name}: none", figures["launch"].get(name) == 0, figures["launch"])
scratch.cleanup()
finish()
