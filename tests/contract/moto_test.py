#!/usr/bin/env python3
"""aws on moto, an EC2 that others have written: the contract of every provider, on machines that moto keeps. It
needs a Python that has moto (tests/requirements.txt). usage: moto_test.py CONTRACT [--few]   `--few`: a sample

moto itself does: offers by its own 860 types and spot prices; rent, with a security group that the driver makes;
describe, list by tag in pages of two, release, release again; a machine that vanished; a stranger's id. What moto has
not is done before it (fakes/aws_moto.py): signatures and dates are verified, faults injected (lost, unreadable and late
answers, throttling, refusals), a token makes one machine, a new one is shown late, a spot machine is taken away.

Not shown there, but on the scripted fake:
- a cap below the market: there an hour of any spot machine costs $0.00001
- prices on demand: moto has no price list
- the metadata service's notice, and the first start: moto runs no machine
- resize: moto tells no type while a machine is stopped, and takes any
- release twice in a subnet of one's own: moto then misses the interface that it has deleted itself
"""
import os, re, subprocess, sys
from pathlib import Path

CASES = [
    "offers: what is sold*", "a life*", "what is unknown*", "lists have pages", "a token makes one machine*",
    "an answer that was lost*", "an answer that cannot be read*", "a create whose time is over*",
    "a create that was accepted*", "a create that ended with*", "a login page*", "each kind of refused create*",
    "asked too often*", "reads are repeated*", "keys that are refused*", "a clock that is off*",
    "a new machine that is not shown*", "spot: its own price*", "spot price: what a look*", "cancelling ends*",
    "check: whose*", "check: keys that*", "check: a wrong clock*"
]
FEW = ["offers: what is sold*", "a life*", "an answer that was lost*"]
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "cli"))
from tap import check, finish

contract, few = sys.argv[1], "--few" in sys.argv
env = dict(os.environ, RILLE_FAKE="aws", RILLE_FAKE_FILE="aws_moto", RILLE_FAKE_PYTHON=sys.executable)
for case in FEW if few else CASES:
    done = subprocess.run([contract, case], env=env, capture_output=True, text=True, timeout=300)
    passed = re.search(r"All tests passed \((\d+) assertions in 1 test case\)", done.stdout)
    check(f"{case.rstrip('*')} ({passed[1] if passed else 0} assertions)", done.returncode == 0 and passed,
          done.stdout[-3000:] + done.stderr[-1000:])
finish()
