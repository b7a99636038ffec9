#!/usr/bin/env python3
"""Fails on a file that clang-format (.clang-format) would write otherwise. usage: format.py [ROOT] [--write]

CLANG_FORMAT names another program. Versions differ in small things: the tree is formatted by Debian 12's, 14.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("kernels", "runtime", "bindings", "tests")
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".cu"}
FORMAT = os.environ.get("CLANG_FORMAT", "clang-format")
MISSING = f"missing: {FORMAT}: apt-get install clang-format, or name version 14 of it in CLANG_FORMAT"


def files_of(root):
    return [p for folder in FOLDERS for p in sorted((root / folder).rglob("*")) if p.suffix in SUFFIXES and p.is_file()]


def differing(root, files):
    """Those of the files that are formatted otherwise, each once."""
    told = subprocess.run([FORMAT, "--dry-run", "-style=file", *map(str, files)], capture_output=True, text=True,
                          check=False)
    if told.returncode:
        sys.exit(f"{FORMAT} failed: {told.stderr.strip()}")
    return sorted({Path(line.split(":")[0]).relative_to(root).as_posix()
                   for line in told.stderr.splitlines() if "[-Wclang-format-violations]" in line})


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    root = Path(names[0] if names else Path(__file__).resolve().parents[2]).resolve()
    files = files_of(root)
    if not shutil.which(FORMAT):
        print(MISSING)
        return 1
    parts = [files[i:i + 50] for i in range(0, len(files), 50)]
    with ThreadPoolExecutor() as pool:
        wrong = [f for part in pool.map(lambda p: differing(root, p), parts) for f in part]
    if "--write" in sys.argv and wrong:
        subprocess.run([FORMAT, "-i", "-style=file", *wrong], cwd=root, check=True)
        print("\n".join(f"{name}: formatted" for name in wrong))
        return 0
    for name in wrong:
        print(f"{name}: not as clang-format writes it; tests/tidy/format.py --write mends it")
    print(f"format: {len(files)} files, {len(wrong)} differ")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
