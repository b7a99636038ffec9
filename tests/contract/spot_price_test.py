#!/usr/bin/env python3
"""The spot price moves between the rent and the first call: while that runs, `rille leases` shows the new price, and in
the end the ledger is the fake's bill. The machine is a folder here (stubs/ssh), with a real agent in it.
usage: spot_price_test.py RILLE PROVIDER"""
import json, os, sqlite3, subprocess, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

PATIENCE_S = 60
SCRIPT = """
local rille = require "rille"
local box = rille.rent("box", { provider = "%s", gpu = "any", spot = true, ttl = "2h", unguarded = true,
                                rates = { CNY = 1 }, gpu_check = false })
return box:call("wait", { args = "%s" }, function(path)
  local file
  repeat
    file = io.open(path)
    if not file then os.execute("sleep 0.05") end
  until file
  return 42
end)
"""
user = User(sys.argv[1], sys.argv[2], "--start", "4")
user.ask("set", end=0.01)
go = Path(user.root, "go")
settings = user.settings()
settings["traits"].update(look_every_ms=200)
env = user.env(STUB_MACHINES=user.root + "/machines", PATH=f"{here}/stubs:{os.environ['PATH']}", RILLE_THREADS="1")


def until(question):
    """What it answers, once that is something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = question()
        if found:
            return found
        time.sleep(0.1)
    return None


def machine():
    return next(iter(user.ask("state")["machines"]), None)


def shown():
    rows = json.loads(user.rille("leases", "--json", settings=settings, env=env)[1] or "[]")
    return rows[0].get("price_per_hour") if rows else None


Path(user.root, "flow.lua").write_text(SCRIPT % (user.provider, go))
Path(user.root, "providers.json").write_text(json.dumps({user.provider: settings}))
run = subprocess.Popen([user.program, "--json", "run", user.root + "/flow.lua"], env=env, cwd=user.root, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
try:
    first = until(machine)
    check("a machine is rented", first and first["spot"], user.ask("state")["calls"][-5:])
    until(lambda: int(user.ask("state")["now"]) > int(first["created"]) + 1)  # a history tells whole seconds
    user.ask("set", prices={first["type"]: dict(spot=first["price"] * 6 // 5)})
    dear = machine()["price"]
    check("its price moves", dear > first["price"], machine())
    told = until(lambda: (price := shown()) and abs(price - dear / 1e6) < dear / 1e9 and price)
    check("`rille leases` shows the price of now", told, (shown(), dear))
    go.write_text("on")
    out, err = run.communicate(timeout=PATIENCE_S)
    check("the run ends well", run.returncode == 0 and json.loads(out)["result"] == 42, (out[-900:], err[-900:]))
    with sqlite3.connect(f"file:{user.root}/home/rille/journal.db?mode=ro", uri=True) as journal:
        missing = list(journal.execute("SELECT data FROM events WHERE data LIKE '%but shows none%'"))
    here = any(name.startswith("nvidia") or name in ("kfd", "dxg") for name in os.listdir("/dev"))
    check("missing GPUs of a rented machine are reported, once", here or len(missing) == 1, missing)
    rows = json.loads(user.rille("cost", "--json", settings=settings, env=env)[1])
    held = rows[0]["machines"][0]
    prices = [s["micros_per_hour"] for s in held["segments"] if s["part"] == "machine"]
    check("both prices are in the ledger", len(prices) == 2 and prices[0] < prices[1], held)
    bill = machine()["bill"]
    check("the ledger is the bill, but for the seconds at begin, change and end", abs(held["machine_micros"] - bill)
          <= 6 * dear / 3600, (held, bill))
finally:
    if run.poll() is None:
        go.write_text("on")
        run.kill()
        run.communicate()
    user.close()
finish()
