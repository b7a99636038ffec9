#!/usr/bin/env python3
"""Runs small forms of the workflows on this machine's CPU and writes their reports for the site's gallery.
usage: gallery.py RILLE FOLDER [NAME ..]"""
import os, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = {  # the workflow, its options, what is to be seen
    "quickstart": (["--steps", "60"], "a byte-level GPT on this manual: staging, training, a checkpoint, its loss"),
    "mlp": ([], "a network that reads digits"),
    "heat_fft": ([], "heat on a plate, by Fourier transforms"),
    "nbody": (["--bodies", "512", "--steps", "20"], "gravity, by a kernel of its own"),
    "raytrace": ([], "a picture, rendered by a kernel"),
}


def report(rille, name, folder):
    """Runs one workflow in a home of its own; its page in `folder`. Gives why there is none, or ""."""
    home = tempfile.mkdtemp(prefix="rille-gallery-")
    env = dict(os.environ, RILLE_HOME=home + "/home", XDG_CONFIG_HOME=home + "/config", RILLE_DEVICE="cpu",
               NO_COLOR="1")
    try:
        words = [rille, "run", f"{ROOT}/workflows/{name}.lua", "--gpu", "cpu", *JOBS[name][0]]
        ran = subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, timeout=900)
        if ran.returncode:
            return ran.stdout[-500:] + ran.stderr[-1500:]
        made = subprocess.run([rille, "report", "last", "--html", f"{folder}/{name}.html"], cwd=home, env=env,
                              capture_output=True, text=True, timeout=120)
        return made.stderr if made.returncode else ""
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main(rille, out, names):
    folder = Path(out) / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or JOBS:
        why = report(os.path.abspath(rille), name, folder)
        print(f"{name}: {why or 'done'}")
        failed += bool(why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
