#!/usr/bin/env python3
"""Measured tokens per dollar: a training on a rented machine measures itself, what it measured stays in the home, and
offers are ranked by it; by the command, and by a script, whose resumption asks the same question.
usage: measured_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile

from remote_cloud import RemoteCloud, serve
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-measured-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1",
           RILLE_PROVIDERS=root + "/providers.json")


def offer(name, gpu, price, **more):
    return {"provider": "x", "id": name, "gpu": gpu, "gpu_count": 1, "gpu_memory_bytes": 80 << 30, "vcpus": 16,
            "memory_bytes": 1 << 38, "region": "here", "spot": False, "price_micros_per_hour": price * 1000000, **more}


class Cloud(RemoteCloud):
    stock = [offer("a100", "A100", 2), offer("h100", "H100", 3), offer("h200", "H200", 4, gpu_memory_bytes=141 << 30),
             offer("t4", "T4", 1, gpu_memory_bytes=16 << 30)]


server, remote = serve(Cloud)
with open(root + "/providers.json", "w") as f:
    json.dump({"remote": remote}, f)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


def data(*words):
    code, out, err = run("--json", "offers", *words)
    assert code == 0, (code, out, err)
    return json.loads(out)


def kept():
    return data("--measured")


# The steps are real, and few: what matters is that they are counted, not how fast they are.
training = """
local box = rille.rent("box", { gpu = "cpu" })
return box:call("train", { args = { steps = %d } }, function(args)
  local f = assert(io.open("corpus", "wb"))
  f:write(("the quick brown fox "):rep(200))
  f:close()
  local model = rille.nn.gpt { layers = 1, heads = 1, width = 8, context = 8, vocab = 256, seed = 1 }
  local opt = rille.optim.sgd(model:parameters(), { lr = 0.01 })
  local update = rille.compile(function(x, y)
    local loss = model(x):cross_entropy(y)
    loss:backward()
    opt:step()
    return loss
  end)
  return rille.train { update = update, data = rille.data.bytes("corpus", { batch = 2, context = 8, seed = 1 }),
    steps = args.steps, log_every = 0, model = model%s }.steps
end)
"""
try:
    check("at first nothing was measured", kept() == [] and "nothing was measured yet" in run("offers",
          "--measured")[1])
    code, out, err = run("run", script("tiny_gpt", training % (20, "")))
    check("a training that is too short measures nothing", code == 0 and kept() == [], (out, err, kept()))
    code, out, err = run("run", script("tiny_gpt", training % (60, "")))
    rows = kept()
    check("a longer one measures itself, under the name of its script", code == 0 and len(rows) == 1 and
          rows[0]["workload"] == "tiny_gpt", (out, err, rows))
    row = rows[0]
    check("what it was, and on what", row["steps"] == 55 and row["batch"] == 16 and row["unit"] == "tokens" and
          row["provider"] == "local" and row["offer"] == "cpu" and row["gpu"] == "" and row["params"] > 2000 and
          row["precision"] == "f32" and row["per_second"] > 0, row)
    code, out, err = run("run", script("again", training % (80, ', workload = "tiny"')))
    rows = kept()
    check("a name of its own; the newest first", [r["workload"] for r in rows] == ["tiny", "tiny_gpt"], rows)
    check("one workload of several", [r["steps"] for r in data("--measured", "--workload", "tiny")] == [75])
    table = run("offers", "--measured")[1]
    check("the table has them, too", "tiny_gpt" in table and "PER SECOND AND GPU" in table, table)

    own = script("own", """
local box = rille.rent("box", { gpu = "cpu" })
return box:call("loop", function()
  local step = rille.measure { items = 100, unit = "samples" }
  for i = 1, 25 do step() end
end)
""")
    code, out, err = run("run", own)
    row = ([r for r in kept() if r["workload"] == "own"] or [{}])[0]
    check("a loop of one's own is measured, too", code == 0 and row.get("steps") == 20 and
          row.get("unit") == "samples" and row.get("batch") == 100, (out, err, row))
    p = subprocess.Popen([rille, "run", script("long", training % (4000, ""))], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, cwd=root)
    while p.poll() is None and not data("--measured", "--workload", "long"):
        pass
    p.kill()
    p.wait()
    code, out, err = run("resume", "last")
    check("it is kept while the training goes on, and a runner that dies loses nothing", code == 0 and
          [r["steps"] for r in data("--measured", "--workload", "long")] == [3995], (out, err, kept()))

    code, out, err = run("offers", "--workload", "tiny")
    check("what was measured on processors ranks no GPUs", code == 1 and "on CPUs only" in err, (out, err))

    # As machines with GPUs would have measured it.
    home = root + "/home/measured.json"

    def measured(gpu, memory, rate, at, name="gpt"):
        return {"workload": name, "unit": "tokens", "per_second": rate, "steps": 400, "batch": 65536, "provider": "aws",
                "offer": "us-east-1/" + gpu, "region": "us-east-1", "spot": False, "gpu": gpu, "gpu_count": 1,
                "gpu_memory_bytes": memory << 30, "run": "r", "measured_at": at, "precision": "bf16",
                "params": 124000000, "price_per_hour": 2.5}

    whole = json.load(open(home))
    whole["measured"] += [measured("A100", 80, 1000, "2026-11-20T00:00:00Z"),
                          measured("H100", 80, 3000, "2026-11-21T00:00:00Z"),
                          measured("H100", 80, 5, "2026-11-01T00:00:00Z", "other")]
    json.dump(whole, open(home, "w"))

    def ranked(*words):
        return [(o["id"], o.get("tokens_per_dollar"), o["tokens_from"])
                for o in data("--provider", "remote", "--workload", "gpt", *words)]

    rows = ranked()
    check("offers by tokens per dollar, as measured; the others come last, and say so", rows[:2] == [
        ("h100", 3000 * 3600 / 3, "measured"), ("a100", 1000 * 3600 / 2, "measured")] and sorted(rows[2:]) == [
        ("h200", None, "not measured"), ("t4", None, "not measured")], rows)
    rows = ranked("--estimated")
    check("estimated where it is wanted: an H200 has an H100's TFLOPs", [r[0] for r in rows][:2] == ["h100", "h200"] and
          all(r[1] for r in rows) and rows[1][2] == "estimated" and rows[0][2] == "measured", rows)
    rows = ranked("--tokens", "A100=9000")
    check("one's own table has the last word", rows[0] == ("a100", 9000 * 3600 / 2, "given"), rows)
    table = run("offers", "--provider", "remote", "--workload", "gpt")[1]
    check("the table, too", "TOKENS PER $" in table and "not measured" in table and "FROM" in table, table)
    code, out, err = run("offers", "--workload", "gtp")
    check("a workload that was never measured", code == 1 and "there are no measurements of that name" in err and
          "did you mean 'gpt'?" in err, err)
    code, out, err = run("offers", "--workload", "gpt", "--rank", "price")
    check("and one that has no meaning", code == 1 and "does not apply to rank" in err, err)

    asks = script("asks", """
local function ask()
  local list = rille.offers { providers = "remote", rank = "tokens_per_dollar", workload = "gpt" }
  return list[1].id .. " " .. list[1].tokens_from
end
local first = ask()
print("first " .. first)
rille.signal("go")
return { first = first, second = ask() }
""")
    p = subprocess.Popen([rille, "run", asks], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         cwd=root)
    line = p.stdout.readline()
    check("a script ranks by it", line == "first h100 measured\n", line)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    whole = json.load(open(home))
    whole["measured"].append(measured("A100", 80, 7000, "2026-11-22T00:00:00Z"))
    json.dump(whole, open(home, "w"))
    name = json.loads(run("ps", "--json")[1])[0]["id"]
    run("signal", name, "go")
    code, out, err = run("--json", "resume", name)
    result = json.loads(out).get("result")
    check("resumed after a newer measurement it keeps its answer, and asks anew with the new one", code == 0 and
          result == {"first": "h100 measured", "second": "a100 measured"}, (out, err))

    rents = script("rents", """
local box = rille.rent("box", { provider = "local", gpu = "cpu", workload = "gpt" })
local ok, err = pcall(rille.rent, "other", { provider = "local", gpu = "cpu", workload = "nothing" })
return { box.provider, err.kind, err.message }
""")
    code, out, err = run("--json", "run", rents)
    result = json.loads(out).get("result") or []
    check("rent goes by the same order, and refuses the same", code == 0 and result[:2] == ["local", "invalid"] and
          "there are no measurements of that name" in result[2], (out, err))
    code, out, err = run("simulate", script("sim", """
local box = rille.rent("box", { gpu = "T4", workload = "nothing", rank = "tokens_per_dollar" })
rille.offers { workload = "nothing" }
"""), "-n", "3", "--json")
    check("a rehearsal has no measurements, and goes by the price", code == 0 and
          json.loads(out)["ended_well"] == 3, (out, err))
    open(home, "w").write("torn")
    code, out, err = run("offers", "--measured")
    check("a damaged file is reported", code == 1 and "measured.json" in err and "integrity" in err, err)
    code, out, err = run("run", script("tiny_gpt", training % (60, "")))
    check("and costs no training", code == 0 and open(home).read() == "torn", (code, out, err))
finally:
    server.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
