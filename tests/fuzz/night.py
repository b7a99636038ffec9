#!/usr/bin/env python3
"""Runs libFuzzer programs in turn, all for the same time. usage: night.py BUILD [--hours H] [--jobs N] [NAME ..]

BUILD is a folder of the preset `fuzz`. Inputs that reach something new are kept in BUILD/corpus/NAME between runs;
what crashes, hangs (25 s) or takes 2 GB is left in BUILD/found. Ends with 1 if anything was found.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def run(program, build, seconds):
    name = program.name.removesuffix("_fuzz")
    corpus, seeds, found = (build / kind / name for kind in ("corpus", "seeds", "found"))
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program], env=os.environ | {"RILLE_FUZZ_SEEDS": str(seeds)}, check=True)
    with open(build / f"{name}.log", "w") as log:
        end = subprocess.run([program, f"-max_total_time={seconds}", f"-dict={seeds}.dict", "-timeout=25",
                              "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={found}/", corpus,
                              seeds],
                             stdout=log, stderr=log, cwd=build,
                             env=os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}).returncode
    left = sorted(p.name for p in found.iterdir())
    print(f"{name}: {'ended well' if end == 0 else f'ended with {end}'}; {len(list(corpus.iterdir()))} inputs kept"
          + (f"; FOUND {' '.join(left)}, see {build / name}.log" if left else ""), flush=True)
    return end == 0 and not left


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    words = parser.parse_intermixed_args()
    build = words.build.resolve()
    programs = sorted(p for p in (build / "tests" / "fuzz").glob("*_fuzz") if os.access(p, os.X_OK))
    if words.names:
        programs = [p for p in programs if p.name.removesuffix("_fuzz") in words.names]
    if not programs:
        sys.exit(f"there is no fuzzer in {build}/tests/fuzz: cmake --preset fuzz && cmake --build --preset fuzz")
    rounds = -(-len(programs) // words.jobs)
    seconds = max(1, int(words.hours * 3600 / rounds))
    with ThreadPoolExecutor(words.jobs) as pool:
        good = list(pool.map(lambda p: run(p, build, seconds), programs))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
