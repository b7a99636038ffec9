#!/usr/bin/env python3
"""Without a rate, costs in another currency are counted in that currency. usage: currency_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile, time

from remote_cloud import RentingCloud, offer, serve
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-currency-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


class Cloud(RentingCloud):
    stock = [offer("yuan", 14_100_000, currency="CNY"), offer("dollar", 3_200_000)]


server, remote = serve(Cloud)
remote["traits"].update(create_timeout_ms=500, visibility_lag_ms=0)


def settings(**more):
    os.makedirs(root + "/config/rille", exist_ok=True)
    with open(root + "/config/rille/providers.json", "w") as f:
        json.dump(dict({"remote": remote}, **more), f)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, body):
    path = f"{root}/{name}.lua"
    with open(path, "w") as f:
        f.write('local rille = require "rille"\n' + body)
    return path


def columns(table, first):
    """The row of that name, without the run before it."""
    rows = (line.split() for line in table.splitlines())
    return next((" ".join(row[row.index(first):]) for row in rows if first in row[:2]), table)


try:
    settings()
    both = script("both", """
local yuan = rille.rent("yuan", { provider = "remote" })
print(yuan.price, yuan.spent, yuan.costs.CNY, yuan.costs.USD)
print(tostring(yuan))
""")
    Cloud.stock = Cloud.stock[:1]
    code, out, err = run("run", both)
    check("a script sees what its machine costs", code == 0 and "nil\t0\t14.1\tnil" in out and "14.10 CNY/h" in out,
          (out, err))
    check("it is said at which price it was rented", "at 14.10 CNY per hour" in err, err)
    Cloud.stock = Cloud.stock + [offer("dollar", 3_200_000)]
    code, out, err = run("run", script("dollar", 'rille.rent("dollar", { provider = "remote", max_price = 9 })'),
                         "--tag", "eval")
    check("dollars are rented beside that", code == 0, (out, err))

    code, out, err = run("cost")
    check("the ledger has both, and adds up neither", columns(out, "yuan").endswith("14.10 CNY 14.10 CNY") and
          columns(out, "dollar").endswith("$3.20 $3.20") and columns(out, "total") == "total $3.20 + 14.10 CNY" and
          "?" not in out, out)
    code, out, err = run("cost", "--by", "provider")
    check("also where it is grouped", "$3.20 + 14.10 CNY" in columns(out, "remote"), out)
    code, out, err = run("cost", "--by", "month")
    check("and by the month", "$3.20 + 14.10 CNY" in columns(out, "total"), out)
    rows = json.loads(run("--json", "cost", "--by", "provider")[1])
    check("as JSON", rows[0]["cost"] == 3.2 and rows[0]["costs"] == {"CNY": 14.1, "USD": 3.2} and
          rows[0]["unknown_price"] is False, rows)
    held = {row["name"]: row for row in json.loads(run("--json", "leases", "--all")[1])}
    yuan, dollar = held["yuan"], held["dollar"]
    check("each lease says its currency where it is not dollars",
          (yuan["price_per_hour"], yuan["currency"], yuan["spent"], yuan["costs"]) == (14.1, "CNY", 0, {"CNY": 14.1})
          and dollar["price_per_hour"] == 3.2 and "currency" not in dollar and "costs" not in dollar, held)
    pieces = yuan["machines"][0]["segments"]
    check("and so does each price in the ledger", [(p["currency"], p["micros_per_hour"]) for p in pieces] ==
          [("CNY", 14_100_000)], pieces)
    table = run("leases", "--all")[1]
    check("rille leases shows it", table.count("14.10 CNY") == 2 and "?" not in table, table)
    check("so does rille ps", "14.10 CNY" in run("ps")[1], run("ps")[1])
    code, out, err = run("show", yuan["run"])
    check("and a run's timeline", "14.10 CNY" in out, (out, err))

    code, out, err = run("run", script("capped", 'rille.budget { limit = 50 }\n'
                                       'rille.rent("capped", { provider = "remote", region = "x", max_price = 1 })'))
    check("max_price says how the other currency is compared",
          code != 0 and "rates = { CNY" in err or "$3.2" in err, err)
    Cloud.stock = Cloud.stock[:1]
    limited = script("limited", 'rille.budget { limit = 50 }\n'
                     'rille.rent("limited", { provider = "remote", ttl = "1h", min_ttl = "1m" })')
    code, out, err = run("run", limited)
    check("a budget without a rate refuses it, and says how to give one", code != 0 and "is in CNY" in err and
          "rates = { CNY = dollars for one }" in err and '"rates": {"CNY"' in err, err)
    settings(rates={"CNY": 0.1})
    code, out, err = run("run", limited, "--new")
    check("with a rate in the settings it is dollars", code == 0 and "$1.41" in err, (out, err))
    out = run("cost")[1]
    check("what was counted before stays as it was", columns(out, "yuan").endswith("14.10 CNY 14.10 CNY") and
          columns(out, "total") == "total $4.61 + 14.10 CNY", out)
finally:
    server.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
