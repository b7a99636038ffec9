#!/usr/bin/env python3
"""aws on moto, an EC2 that others have written: the driver keeps there what moto lets it show. moto comes from PyPI
into a virtual environment that is made; exit code 77 = skipped. usage: moto_test.py VENV_FOLDER CONTRACT

Shown: offers by moto's own 860 types and spot prices; rent, with a security group that the driver makes; describe, list
by tag in pages of two, release, release again; a machine that vanished; a stranger's id.

Not shown there, but on the scripted fake:
- signatures, refused keys, the clock: moto verifies no signature and no date
- a token makes one machine: moto makes another one
- refusals (no such type, capacity, quota, a cap below the market): moto sells everything
- lost answers, throttling, 5xx, a new machine that is not shown yet: moto has no faults and no clock
- prices on demand: moto has no price list
- spot notices and reclaims: moto takes nothing away
- release twice in a subnet of one's own: moto then misses the interface that it has deleted itself
- the first start: moto runs no user data
"""
import os, re, subprocess, sys
from pathlib import Path

CASES = ["offers: what is sold*", "a life*", "what is unknown*", "lists have pages"]
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "cli"))
from moto_cloud import environment
from tap import check, finish

folder, contract = environment(sys.argv[1]), sys.argv[2]
env = dict(os.environ, RILLE_FAKE="aws", RILLE_FAKE_FILE="aws_moto", RILLE_FAKE_PYTHON=str(folder / "bin" / "python"))
for case in CASES:
    done = subprocess.run([contract, case], env=env, capture_output=True, text=True, timeout=300)
    passed = re.search(r"All tests passed \((\d+) assertions in 1 test case\)", done.stdout)
    check(f"{case.rstrip('*')} ({passed[1] if passed else 0} assertions)", done.returncode == 0 and passed,
          done.stdout[-3000:] + done.stderr[-1000:])
finish()
