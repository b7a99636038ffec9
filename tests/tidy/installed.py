#!/usr/bin/env python3
"""Checks that `./bootstrap build` builds everything that `cmake --install` then lays down: the target `installed`.
usage: installed.py ROOT BUILD_FOLDER [NINJA]"""

import re
import subprocess
import sys
from pathlib import Path

INSTALL = re.compile(r"file\(INSTALL .*? TYPE (?:EXECUTABLE|SHARED_LIBRARY|STATIC_LIBRARY|MODULE) (.*?)\)", re.S)
PATH = re.compile(r'"([^"]*)"')
OUTPUT = re.compile(r" (?:-o|qc) (\S+)")  # of a compiler, a linker, ar


def name_of(path):
    """The file without its version: librille.so.0.1.0 and its links are one."""
    return re.sub(r"\.so\..*", ".so", path)


def installed_by(build):
    """The built programs and libraries that the install scripts copy, as paths below the build folder."""
    found = set()
    for script in Path(build).rglob("cmake_install.cmake"):
        for files in INSTALL.findall(script.read_text()):
            found |= {name_of(p[len(build) + 1:]) for p in PATH.findall(files) if p.startswith(build + "/")}
    return found


def built_by(commands):
    return {name_of(output) for output in OUTPUT.findall(commands)}


def problems(bootstrap, installed, built):
    out = []
    if not re.search(r"^  build\)\n(?:    .*\n)*?    build installed\b", bootstrap, re.M):
        out.append("bootstrap: `build` does not build the target `installed`")
    if not installed:
        out.append("no installed program or library was found")
    return out + [f"{name} is installed, but the target `installed` does not build it"
                  for name in sorted(installed - built)]


def main():
    root, build, ninja = sys.argv[1], str(Path(sys.argv[2]).resolve()), (sys.argv[3:] or ["ninja"])[0]
    if not Path(build, "build.ninja").exists():
        print("skipped: not built by Ninja")
        return 77
    told = subprocess.run([ninja, "-C", build, "-t", "commands", "installed"], stdout=subprocess.PIPE, text=True,
                          check=True)
    wrong = problems(Path(root, "bootstrap").read_text(), installed_by(build), built_by(told.stdout))
    print("\n".join(wrong) or "installed: everything is built")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
