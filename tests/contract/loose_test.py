#!/usr/bin/env python3
"""Disks that outlived their machine: `rille leases --all-providers` shows them, and `rille gc` ends them.

usage: loose_test.py RILLE PROVIDER
"""
import json, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille, provider = sys.argv[1:3]
user = User(rille, provider, "--start", "0.02")
settings = user.settings(traits=dict(create_timeout_ms=0, visibility_lag_ms=0, token_lifetime_ms=0))
RENT = f"""local box = rille.rent("box", {{ provider = "{provider}", gpu = "A100", ttl = "2h", unguarded = true }})
box:detach("1h")
return box:describe().name
"""


def shown(disk, text):
    """By its name: the provider's id may be a whole path."""
    return disk.split("/")[-1] in text


def disks():
    return [o["id"] for o in user.ask("state")["objects"] if o["kind"] == "disk" and o["alive"]]


try:
    status, out, err = user.run(RENT, settings=settings)
    machines = [m["id"] for m in user.ask("state")["machines"]]
    check("a machine is rented", status == 0 and len(machines) == 1 and len(disks()) == 1, (status, out, err))
    lease = json.loads(user.rille("leases", "--json", settings=settings)[1])[0]
    status, out, err = user.rille("release", lease["id"], settings=settings)
    check("its disk goes with it", status == 0 and not disks(), (status, out, err))

    status, out, err = user.run(RENT, settings=settings)
    machine = user.ask("state")["machines"][-1]["id"]
    disk = disks()[0]
    user.ask("strand", id=machine)
    user.ask("vanish", id=machine)
    check("a disk outlives its machine", disks() == [disk], disks())
    status, out, err = user.rille("leases", "--all-providers", settings=settings)
    check("it is shown, and that it needs a hand", status == 3 and shown(disk, out), (status, out, err))
    status, out, err = user.rille("gc", settings=settings)
    check("gc ends it with its lease", status == 0 and not disks(), (status, out, err))
    check("nothing that costs money is alive", user.ask("state")["alive"] == 0, user.ask("state")["alive"])
    status, out, err = user.rille("leases", "--all-providers", settings=settings)
    check("and nothing is shown", status == 0 and not shown(disk, out), (status, out, err))
    check("nothing secret was shown or written", not user.leaks(), user.leaks())
finally:
    user.close()
finish()
