#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) over changed C++ files. usage: lint.py [--since REF] [FILE ..]

Without FILE: the .cpp files that differ from REF (HEAD), and those in no commit. CLANG_TIDY names another program
(apt-get install clang-tidy). Each file takes ten seconds or more, so no test of every run does this.
"""

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy")
# clang 14 has coroutines, but not yet the macro by which libstdc++ knows.
FLAGS = ["-w", "-std=c++20", f"-I{ROOT}", "-isystem/usr/include/luajit-2.1",
         "-D__cpp_impl_coroutine=201902L", "-DFMT_SHARED", "-DRILLE_VERSION=\"0\"",
         "-DRILLE_CUDA_BUILD_ID=\"0\""]


def git(*arguments):
    told = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return told.stdout.split("\n")


def changed(since):
    names = git("diff", "--name-only", "--diff-filter=d", since) + git("ls-files", "--others", "--exclude-standard")
    return sorted({n for n in names if n.endswith(".cpp") and n.startswith(("runtime/", "bindings/"))})


def lint(name):
    told = subprocess.run([TIDY, "--quiet", name, "--", *FLAGS], cwd=ROOT, capture_output=True, text=True, check=False)
    return name, told.returncode, told.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="HEAD", help="a commit or branch")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    files = arguments.files or changed(arguments.since)
    if not shutil.which(TIDY):
        print(f"missing: {TIDY}: apt-get install clang-tidy, or name it in CLANG_TIDY")
        return 1
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text in pool.map(lint, files):
            failed += code != 0
            print(f"{name}: {text if code else 'ok'}", flush=True)
    print(f"lint: {len(files)} files, {failed} with problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
