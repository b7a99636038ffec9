#!/usr/bin/env python3
"""How many lines the tests have run, by folder. usage: coverage.py [BUILD]   (default: build/coverage)

First, from the root: cmake --preset coverage, cmake --build --preset coverage, ctest --preset coverage -j 4
--timeout 1200
Needs gcovr (apt-get install gcovr). A process that ends by kill -9 or _exit counts nothing, so the real figures are
a little higher. Exit 1 where no test was run yet.
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "coverage").resolve()
    command = ["gcovr", "--root", ROOT, "--object-directory", build, "--exclude-unreachable-branches", "-j", "2",
               "--gcov-ignore-parse-errors", "--json-summary", "-", build]
    for folder in ("runtime", "bindings", "kernels"):
        command += ["--filter", f"{ROOT}/{folder}/"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not report["line_covered"]:
        print(f"no line of {build} was run: run its tests first")
        return 1
    folders = collections.defaultdict(lambda: [0, 0])
    for file in report["files"]:
        parts = Path(file["filename"]).parts
        for name in ("/".join(parts[:3 if parts[0] == "runtime" else 2 if parts[0] == "bindings" else 1]), "all"):
            folders[name][0] += file["line_covered"]
            folders[name][1] += file["line_total"]
    for name, (covered, total) in sorted(folders.items()):
        print(f"{name:32} {100 * covered / total:5.1f} %  {covered:6} of {total:6} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
