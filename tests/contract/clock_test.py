#!/usr/bin/env python3
"""A clock that is an hour off, here or there: a machine that its provider ends by itself ends when its lease does by
the provider's clock, and a lease that is detached for less than it was rented for has a switch that is set for that, or
is shown as one that has not.

usage: clock_test.py RILLE PROVIDER
"""
import json, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille, provider = sys.argv[1:3]
MARGIN_S = 40 * 60  # that a provider is given beyond a lease's end, at most: DeadMan::provider of its driver
RENT = 'local box = rille.rent("box", { provider = "' + provider + '", unguarded = true, gpu = "A100", ' \
       'ttl = "%s" })\n' \
       'box:detach("%s")\nreturn box:describe().name\n'
ENDS_ITSELF = provider in ("alibaba", "tencent", "huawei", "gcp")


def rented(ttl, detached, skew_s=0):
    """What the provider makes of it: (seconds to the machine's end, or none; the output of `rille leases`, as JSON)."""
    user = User(rille, provider)
    try:
        if skew_s:
            user.ask("fault", kind="skew", seconds=skew_s)
        status, out, err = user.run(RENT % (ttl, detached))
        state = user.ask("state")
        check(f"rented for {ttl} by a clock that is {skew_s} s behind", status == 0 and len(state["machines"]) == 1,
              (status, out, err))
        if not state["machines"]:
            return None, {}, ""
        machine = state["machines"][0]
        shown = json.loads(user.rille("leases", "--json")[1] or "[]")
        return machine["expires"] and machine["expires"] - state["now"], shown[0], user.rille("leases")[1]
    finally:
        user.close()


if ENDS_ITSELF:
    for skew_s in (3600, -3600):
        ends_s, _, _ = rented("20m", "20m", skew_s)
        check(f"its provider ends it then, too ({skew_s})", ends_s and 1100 < ends_s < 1200 + MARGIN_S, ends_s)

ends_s, lease, text = rented("24h", "1h")
if provider == "alibaba":
    check("a nearer end is the provider's, too", ends_s < 3600 + MARGIN_S and lease["ended_by"] == "provider",
          (ends_s, lease))
elif lease.get("ended_by") != "nobody":
    check("a switch that stays as it is, is shown so", lease["ended_by"] == "watch" and "armed_until" in lease and
          ("22h" in text or "23h" in text) and "rille watch" in text, (ends_s, lease, text))
ends_s, lease, text = rented("1h", "1h")
check("a lease that is detached for as long is ended as before", lease.get("ended_by") not in (None, "watch"), lease)
finish()
