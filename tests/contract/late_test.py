#!/usr/bin/env python3
"""A create whose answer was lost, and that the cloud carries out after everything else: the machine is found by the
last look of its run, told, and ended. That look asks once, holds up nothing when nobody answers, and is not made by
a run that has rented nothing.

usage: late_test.py RILLE PROVIDER
"""
import collections, json, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille, provider = sys.argv[1:3]
user = User(rille, provider, "--start", "0.02")
# An empty list is a proof at once, by which this cloud does not hold.
settings = user.settings(traits=dict(create_timeout_ms=0, visibility_lag_ms=0, token_lifetime_ms=0))
control = Path(user.root, "control.py")
control.write_text(f"""import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
for word in sys.argv[1:]:
    what, _, body = word.partition("=")
    opener.open(urllib.request.Request("http://127.0.0.1:{user.told['port']}/_fake/" + what, (body or "{{}}").encode()))
""")


def flow(words):
    """Rents and releases; then the control of the fake hears these words."""
    return f"""
rille.scope("work", function()
  local box = rille.rent("box", {{ provider = "{provider}", gpu = "A100", ttl = "2h", unguarded = true }})
  rille.step("use", function() return box:describe().name end)
end)
rille.step("then", function() return os.execute([['{sys.executable}' '{control}' {words}]]) == 0 end)
print "well"
"""


def alive():
    return [m["id"] for m in user.ask("state")["machines"] if m["state"] not in ("gone", "ending")]


def since(calls):
    return [c["operation"] for c in user.ask("state")["calls"][calls:]]


try:
    status, out, err = user.run('return rille.step("nothing", function() return 1 end)', settings=settings)
    check("a run that rents nothing asks nobody", status == 0 and not since(0), (status, out, err, since(0)))

    status, out, err = user.run(flow("advance='{\"seconds\": 600}'"), settings=settings)
    calls = user.ask("state")["calls"]
    last = [c["operation"] for c in calls if c["time"] >= user.ask("state")["now"] - 500]
    twice = [o for o, n in collections.Counter(last).items() if n > 1]
    check("a normal run: no machine is reported", status == 0 and "late" not in err and not alive(),
          (status, out, err))
    check("each list is asked for once", last and not twice, last)

    user.ask("fault", kind="lands_late")
    status, out, err = user.run(flow("land"), settings=settings)
    machines = user.ask("state")["machines"]
    check("a create that is lost makes its machine after all", len(machines) == 3, machines)
    late = machines[-1]["id"]
    check("the run ends well", status == 0 and "well" in out, (status, out, err))
    check("and tells that it has found a machine", "late" in err and late.rpartition("/")[2] in err, err)
    check("which has ended", not alive(), user.ask("state")["machines"])
    status, out, err = user.rille("audit", "--json", settings=settings)
    check("the audit trail has it by its id", '"stray"' in out and late.rpartition("/")[2] in out, out[-2000:])

    user.ask("fault", kind="lands_late")
    status, out, err = user.run(flow('land fault=\'{"kind": "page", "times": 1000000}\''), settings=settings)
    check("no answer at the end: the run succeeds all the same", status == 0 and "well" in out,
          (status, out, err))
    check("and says what looks again", "the last look for machines" in err and "rille gc" in err, err)
    check("the machine runs on", len(alive()) == 1, alive())
    user.ask("calm")
    status, out, err = user.rille("gc", settings=settings)
    check("until gc ends it", status == 0 and not alive(), (status, out, err, alive()))
    check("nothing secret was shown or written", not user.leaks(), user.leaks())
finally:
    user.close()
finish()
