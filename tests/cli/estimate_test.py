"""Prices without an account: `rille offers --list`, `rille estimate`, and the list prices of `rille plan` and
`rille simulate`, each marked with its date; and that no budget counts one. usage: estimate_test.py RILLE"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from remote_cloud import RemoteCloud, serve  # noqa: E402
from tap import check, finish  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-estimate-")
env = {**os.environ, "RILLE_HOME": root + "/home", "XDG_CONFIG_HOME": root + "/config", "NO_COLOR": "1",
       "RILLE_PROVIDERS": root + "/providers.json"}
env.pop("RILLE_THREADS", None)


class Cloud(RemoteCloud):
    """One machine of aws' type, first with a price, then without."""
    stock = [{"provider": "remote", "id": "h100x8", "gpu": "H100", "gpu_count": 8, "gpu_memory_bytes": 80 << 30,
              "vcpus": 96, "memory_bytes": 1 << 40, "region": "here", "spot": False,
              "price_micros_per_hour": 24_000_000}]


server, remote = serve(Cloud)


def settings(value):
    with open(root + "/providers.json", "w") as f:
        json.dump(value, f)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def data(*words):
    code, out, err = run("--json", *words)
    assert code == 0, (words, code, out, err)
    return json.loads(out)


def script(name, source):
    path = f"{root}/{name}.lua"
    with open(path, "w") as f:
        f.write('local rille = require "rille"\n' + source)
    return path


try:
    settings({})
    # --- rille offers --list
    code, out, err = run("offers", "--list", "--gpu", "H100:8")
    first = out.splitlines()[1].split()
    check("list prices are shown without an account, with their date", code == 0 and "LIST PRICE OF" in out and
          first[0] == "lambda" and "$31.92" in first and first[-1] == "2026-10-10" and "today's may differ" in err,
          (code, out, err))
    check("nothing was opened or written for it", not os.path.exists(root + "/home"))
    rows = data("offers", "--list", "--gpu", "A100-40GB:1", "--provider", "gcp")
    check("as data each price has its source and date", rows[0]["list_prices"]["reserved_3y"]["date"] == "2025-03-06"
          and rows[0]["list_prices"]["on_demand"]["source"] and rows[0]["list_price_of"] == "2025-03-06 to 2026-10-10",
          rows)
    every = data("offers", "--list")
    check("all of them, with each provider that has any", {r["provider"] for r in every} ==
          {"aws", "azure", "gcp", "lambda", "runpod", "vast"} and len(every) > 100, len(every))
    spot = data("offers", "--list", "--spot", "--gpu", "H100:8")
    check("--spot: those with a spot price", spot and all("spot_price_per_hour" in r for r in spot), spot)
    check("a B200 whose only price is on spot is listed, too", any(
        r["provider"] == "gcp" and "price_per_hour" not in r for r in data("offers", "--list", "--gpu", "B200")))
    code, out, err = run("offers", "--list", "--limit", "3")
    check("rows are limited, and the rest is counted", len(out.splitlines()) == 4 and "more: --limit 0" in err, err)
    code, out, err = run("offers", "--list", "--gpu", "H1O0")
    check("a misspelt GPU is named", "no list prices match" in out and "did you mean --gpu H100?" in err, (out, err))
    code, out, err = run("offers", "--list", "--vcpus", "8")
    check("what the list does not know is said", "knows no machine's CPUs" in err, (out, err))
    os.remove(root + "/providers.json")
    listed = env.pop("RILLE_PROVIDERS")
    code, out, err = run("offers", "--gpu", "H100")
    env["RILLE_PROVIDERS"] = listed
    settings({})
    check("without an account the way to the list is named", "rille offers --list" in err, (out, err))

    # --- rille estimate
    code, out, err = run("estimate", "--gpu", "H100", "--hours", "8")
    check("what hours of a GPU cost", code == 0 and out.startswith("machines for 8.0 h") and "LIST PRICE OF" in out and
          "No live prices: no offer of a GPU passes gpu = \"H100\": list prices instead." in out and
          "(list price of 2026-10-10) for 8.0 h" in out, (code, out, err))
    check("it makes no run", not os.path.exists(root + "/home/journal.db"))
    rental = data("estimate", "--gpu", "H100:8", "--hours", "2h", "--provider", "lambda")
    check("as data", rental["kind"] == "rental" and abs(rental["plans"][0]["cost"]["on_demand"] - 63.84) < 1e-9 and
          rental["list_price_of"] == "2026-10-10" and rental["unpriced"], rental)
    code, out, err = run("estimate", "--gpu", "H100:8", "--hours", "1", "--provider", "lambda,gcp")
    check("providers that are not set up are named, and have list prices", code == 0 and "lambda" in out and
          "not: gcp: the provider 'gcp' is not set up" in out, (code, out, err))
    code, out, err = run("estimate", "--gpu", "H100:8", "--hours", "1", "--provider", "lamda")
    check("a provider that does not exist is an error", code == 1 and "there is no provider 'lamda'" in err, err)
    code, out, err = run("estimate", "--model", "gpt2", "--tokens", "10B", "--gpu", "A100-80GB:8,H100:8",
                         "--deadline", "12h", "--assume", "utilization=0.4", "--rows", "2")
    check("a training", code == 0 and out.startswith("gpt2: training on 10B tokens in bf16") and
          "(list price of " in out and "and " in out and "assumptions" in out, (code, out, err))
    service = data("estimate", "--model", "resnet50", "--requests-per-second", "2000", "--latency", "50ms", "--gpu",
                   "L4")
    check("a service", service["kind"] == "inference" and service["plans"][0]["gpu"] == "L4", service["kind"])
    for words, message in ((("--gpu", "H100"), "gpu alone says nothing to do"),
                           (("--hours", "8", "--model", "gpt2"), "model has no meaning for a rental of hours"),
                           (("--hours", "soon"), "hours = soon"),
                           (("--gpu", "H1O0", "--hours", "1"), "nothing is known of a GPU 'H1O0'")):
        code, out, err = run("estimate", *words)
        check("refused: " + " ".join(words), code == 1 and message in err and "estimate.lua" not in err, (code, err))
    code, out, err = run("estimate", "--hours", "1", "--assume", "x")
    check("an assumption needs a value", code == 2 and "NAME=VALUE" in err, (code, err))

    # --- with a provider, whose live prices go before the list
    settings({"remote": remote})
    live = data("estimate", "--gpu", "H100:8", "--hours", "1")
    check("a live price goes before the list", [p["provider"] for p in live["plans"]] == ["remote"] and
          live["plans"][0]["cost"]["on_demand"] == 24 and "list_price_of" not in live and "unpriced" not in live, live)
    check("and is kept for the next", data("offers", "--gpu", "H100:8")[0].get("age_seconds") is not None)

    # --- rille plan
    settings({})
    rents = script("rents", """
local box = rille.rent("trainer", { gpu = "H100:8", provider = "lambda", ttl = "8h" })
box:call("train", { sim = { duration = "2h", result = 1 } }, function() end)
""")
    code, out, err = run("plan", rents)
    check("a plan has the list price, with its date", code == 0 and "lambda *" in out and "$31.92" in out and
          "* no configured provider has it: list price of 2026-10-10\n" in out and "$255.36" in out, (code, out, err))
    lease = data("plan", rents)["leases"][0]
    check("as data, too", lease["list_price_of"] == "2026-10-10" and lease["offer"] == "gpu_8x_h100_sxm5", lease)
    asks = script("asks", """
rille.budget { limit = 20 }
local box = rille.rent("trainer", { gpu = "H100:1", ttl = "8h", spot = true })
box:call("train", {}, function() return { loss = 1 } end)
""")
    code, out, err = run("plan", asks)
    check("a ttl that the budget does not pay for is explained", code == 0 and any(
        line.startswith("trainer: its TTL is 7h") and ", not the 8h asked: at $2." in line and "budget" in line
        for line in out.splitlines()), (code, out, err))
    sums = [word for line in out.splitlines() if "asked" not in line for word in line.split() if word[0] == "$"]
    check("sums are in cents", all(len(word.split(".")[1]) <= 4 for word in sums), sums)
    uses = script("uses", """
local box = rille.rent("trainer", { gpu = "H100" })
local result = box:call("train", function() return { loss = 1 } end)
print(result.loss)
""")
    code, out, err = run("plan", uses)
    check("a result that is not known is named, with what to write",
          "the result of call 'train' is not known" in err and "sim = { duration" in err, (out, err))
    check("as data, too", "call 'train'" in data("plan", uses)["error"]["hint"])

    # --- rille simulate
    code, out, err = run("simulate", rents, "-n", "3", "--weather", "calm")
    check("a simulation names its prices", code == 0 and "prices: h100x8: lambda's list price of 2026-10-10" in out,
          (code, out, err))
    check("as data, too", "list price of 2026-10-10" in data("simulate", rents, "-n", "2")["prices"]["h100x8"])
    tiny = script("tiny", 'rille.rent("a", { gpu = "cpu", provider = "nobody" }):call("c", '
                          '{ sim = { duration = "1s" } }, function() end)')
    many = run("simulate", tiny, "-n", "5", "--weather", "calm")[1]
    one = run("simulate", tiny, "-n", "1", "--weather", "calm")[1]
    check("a small sum is the same money in one run and in many", "$0.00 " not in many and "$0.00" in one and
          "cpu-4: an invented price" in many, (many, one))

    # --- budgets
    Cloud.stock[0]["price_micros_per_hour"] = -1
    Cloud.stock[0].update(id="p5.48xlarge", region="us-east-1")
    settings({"remote": remote})
    pays = script("pays", 'rille.budget { limit = 1000 }\nrille.rent("box", { gpu = "H100:8", provider = "remote" })\n')
    code, out, err = run("run", pays)
    check("a budget counts no list price: an unknown price is refused", code != 0 and
          "the price is not known" in err and "set its price: price = dollars per hour" in err, (code, out, err))

    # --- rille cost of several runs
    settings({})
    local = script("local", 'rille.rent("trainer", { provider = "local" }):release()\n')
    runs = [run("run", local)[0] for _ in range(2)]
    code, out, err = run("cost")
    ids = [r["id"] for r in data("ps")]
    check("rille cost says which run each lease is of", runs == [0, 0] and out.startswith("RUN") and
          all(i in out for i in ids[:2]), (runs, out, err))
    check("of one run there is no such column", run("cost", ids[0])[1].startswith("LEASE"))
finally:
    server.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
