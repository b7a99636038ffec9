#!/usr/bin/env python3
"""A virtual environment with packages from PyPI, made anew only when what it is to have has changed.

usage: environment.py FOLDER REQUIREMENTS ..     FOLDER/bin/python is then a Python that has them

The requirements name every package with its version, those that others need included: nothing else is installed."""
import fcntl, os, shutil, subprocess, sys
from pathlib import Path

MEND = "apt-get install python3-venv, and a network that reaches PyPI, then the same test again"


def run(*words):
    if subprocess.run(words).returncode:
        print("failed:", *words)
        print(f"missing: a Python environment of the tests: {MEND}")
        sys.exit(1)


def make(folder, requirements):
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    files = [word for name in requirements for word in ("-r", name)]
    run(f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--prefer-binary", *files)


def main():
    folder, requirements = os.path.abspath(sys.argv[1]), sys.argv[2:]
    wanted = "\n".join([folder, sys.version, *(Path(name).read_text() for name in requirements)])
    ready = Path(folder, "ready")
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    with open(folder + ".lock", "w") as lock:  # ctest may run in two terminals
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists() and ready.read_text() == wanted:
            return print(f"{folder} is as it should be")
        make(folder, requirements)
        ready.write_text(wanted)


if __name__ == "__main__":
    main()
