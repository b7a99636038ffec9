#!/usr/bin/env python3
"""The manual names no function or method that the reference lacks: `box:call_all` once stood there."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJECTS = r"rille(?:\.\w+)*|box|comm|cluster|pool|dev|device|handle|model|opt|optimizer"
ELSEWHERE = {
    "box:call_all",  # limits.md says that it is not there
    "rille.native",  # what rille.* is made of: for its own modules
    "rille.slep",  # a spelling mistake at the prompt
    "rille.Runtime",  # Python's
    "rille.hpp",
    "rille:linkage",  # a property of the bundle's manifest
}

known = set()
for page in (ROOT / "docs/reference").glob("*.md"):
    known |= set(re.findall(r"\w+", page.read_text()))

failed = 0
for page in sorted([ROOT / "README.md", *(ROOT / "docs/manual").rglob("*.md")]):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for found in re.finditer(rf"\b(?:{OBJECTS})[.:](\w+)", line):
            if found.group(1) not in known and found.group(0) not in ELSEWHERE:
                print(f"FAILED: {page.relative_to(ROOT)}:{number}: {found.group(0)} is not in docs/reference")
                failed += 1
sys.exit(failed > 0)
