#!/usr/bin/env python3
"""What a run of ctest skipped and why, and the names of the cases that failed.

usage: summary.py JUNIT.xml     (ctest --output-junit)

A case is named by what its program prints: "FAILED: name" (tests/unit/main.cpp), "not ok 3 - name" (TAP); else the
last line of its output stands for it."""
import re, sys
import xml.etree.ElementTree as ElementTree

MOST = 20  # cases named of one test


def lines_of(test):
    return [line.strip() for line in (test.findtext("system-out") or "").splitlines() if line.strip()]


def failed_cases(lines):
    cases = [found[1] for line in lines if (found := re.match(r"(?:FAILED: |not ok \d+ - )(.+)", line))]
    return cases or lines[-1:] or ["it printed nothing"]


def skipped_parts(lines):
    """A test that ran, but left a part of itself out."""
    return [found[1] for line in lines if (found := re.match(r"(?:# |\w+: )?skipped: (.+)", line))]


def summary(tests):
    skipped, parts, failed = [], [], []
    for test in tests:
        name, status, lines = test.get("name"), test.get("status"), lines_of(test)
        if status == "fail":
            cases = failed_cases(lines)
            failed += [f"  {name}: {case}" for case in cases[:MOST]]
            failed += [f"  {name}: and {len(cases) - MOST} more"] if len(cases) > MOST else []
        elif status == "run":
            parts += [f"  {name}: {why}" for why in dict.fromkeys(skipped_parts(lines))]
        elif status != "disabled":
            why = skipped_parts(lines) or lines[-1:] or [test.findtext("skipped") or "what it needs has failed"]
            skipped.append(f"  {name}: {why[0]}")
    return skipped, parts, failed


def main():
    skipped, parts, failed = summary(ElementTree.parse(sys.argv[1]).getroot().iter("testcase"))
    print()
    for title, rows in ((f"{len(skipped)} tests were skipped", skipped),
                        (f"{len(parts)} parts of tests were left out", parts),
                        (f"{len(failed)} cases failed", failed)):
        print("rille:", title + (":" if rows else ""))
        print(*rows, sep="\n", end="\n" if rows else "")
    print()


if __name__ == "__main__":
    main()
