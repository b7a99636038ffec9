#!/usr/bin/env python3
"""`rille.metric` and `rille metrics`: what a script, its calls and its trainings report is there once and in order,
also after kills. usage: metrics_test.py RILLE"""
import csv, io, json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-metrics-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, body):
    with open(f"{root}/{name}", "w") as f:
        f.write('local rille = require "rille"\n' + body)


def metrics(*words):
    """The points of each series by name and source."""
    code, out, err = run("metrics", *(words or ["last"]), "--json")
    if code:
        return err
    return {(s["name"], s["source"]): [(p.get("step"), p["value"]) for p in s["points"]] for s in json.loads(out)}


def without_load(series):
    return {k: v for k, v in series.items() if not k[0].startswith(("cpu_", "gpu_"))}


try:
    # From workflow code, a step, and a call on a machine.
    script("all.lua", """
rille.metric("plain", 1.5)
rille.metric("plain", 2.5)
rille.step("s", function() for i = 1, 3 do rille.metric("in step", i * i, { step = i }) end end)
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
box:call("train", function() for i = 1, 1000 do rille.metric("loss", 1 / i, { step = i }) end end)
rille.metric("bad", 0 / 0)
""")
    code, out, err = run("run", "all.lua")
    all_ = without_load(metrics())
    expected = {("plain", "script"): [(None, 1.5), (None, 2.5)], ("in step", "script"): [(1, 1), (2, 4), (3, 9)],
                ("loss", "main/train#1"): [(i, 1 / i) for i in range(1, 1001)],
                ("bad", "script"): [(None, {"$num": "nan"})]}
    check("each is there once, in order", code == 0 and all_ == expected, (err, {k: v[:5] for k, v in all_.items()}))

    code, out, err = run("metrics", "last", "--format", "csv")
    rows = [r for r in csv.DictReader(io.StringIO(out)) if r["name"] == "loss"]
    check("as CSV", [(int(r["step"]), float(r["value"])) for r in rows] == expected["loss", "main/train#1"], rows[:3])
    check("with NaN", "bad,script,," in out and out.splitlines()[1].endswith("NaN"), out[:300])
    code, out, err = run("metrics", "last", "--format", "jsonl")
    rows = [r for r in map(json.loads, out.splitlines()) if r["name"] == "loss"]
    check("as JSON lines", [(r["step"], r["value"]) for r in rows] == expected["loss", "main/train#1"], rows[:3])
    code, out, err = run("metrics", "last", "--format", "prometheus")
    last = json.loads(run("ps", "--json")[1])[0]["id"]
    check("as Prometheus text", f'rille_metric{{run="{last}",source="main/train#1",name="loss"}} 0.001\n' in out and
          "# TYPE rille_metric gauge\n" in out and 'name="bad"} NaN' in out, out)
    code, out, err = run("metrics", "last")
    check("as a table", out.splitlines()[0].split() == ["NAME", "SOURCE", "POINTS", "FIRST", "LAST", "LOWEST",
        "HIGHEST"] and
          any(l.split() == ["loss", "main/train#1", "1000", "1", "0.001", "0.001", "1"] for l in out.splitlines()), out)

    # A program reports by lines of its output, which stay there.
    script("program.lua", """
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
local r = box:exec("train", { argv = { "sh", "-c",
  [[for i in 1 2 3; do echo "rille.metric loss=$i.5 step=$i lr=1e-3"; done
    echo rille.metric x; printf 'rille.metric n=7']] } })
return r.output
""")
    code, out, err = run("run", "program.lua")
    printed = without_load(metrics())
    check("a program's lines are metrics", printed == {
        ("loss", "main/train#1"): [(i, i + 0.5) for i in (1, 2, 3)],
        ("lr", "main/train#1"): [(i, 0.001) for i in (1, 2, 3)],
        ("n", "main/train#1"): [(None, 7)]}, (printed, err))
    output = json.loads(run("show", "last", "--json")[1])["result"]
    check("and its output", output.startswith("rille.metric loss=1.5 step=1 lr=1e-3\n") and "metric x\n" in output,
          output)

    # Mistakes.
    script("mistakes.lua", """
for _, try in ipairs { { "" }, { ("x"):rep(129), 1 }, { "a\\nb", 1 }, { "a", "1" }, { "a" }, { "a", 1, { stp = 1 } },
                       { "a", 1, { step = 1 / 0 } } } do
  local ok, err = pcall(rille.metric, try[1], try[2], try[3])
  print(ok, err.kind, err.message)
end
""")
    code, out, err = run("run", "mistakes.lua")
    lines = out.splitlines()
    check("each mistake is named", len(lines) == 7 and all(l.startswith("false\tinvalid") for l in lines) and
          "unknown option 'stp'" in out and "the value of 'a' is" in out, out)

    # Killed while it waits, and resumed: what ran before is not written again.
    script("killed.lua", """
for i = 1, 20 do
  rille.metric("outside", i)
  rille.step("s", function() rille.metric("inside", i, { step = i }) end)
end
rille.signal("go")
rille.metric("outside", 21)
""")
    process = subprocess.Popen([rille, "run", "killed.lua"], env=env, cwd=root, stderr=subprocess.PIPE)
    while process.poll() is None:
        entries = json.loads(run("show", "last", "--json")[1]).get("entries", [])
        if entries and entries[-1]["kind"] == "signal":
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    run("signal", "last", "go")
    code, out, err = run("resume", "last")
    killed = metrics()
    check("a resumed run has each once", killed == {("outside", "script"): [(None, i) for i in range(1, 22)],
                                                     ("inside", "script"): [(i, i) for i in range(1, 21)]}, killed)

    # A call goes on while no runner is there, and its metrics with it.
    script("away.lua", f"""
local box = rille.rent("box", {{ gpu = "cpu", provider = "local" }})
box:call("works", function()
  for i = 1, 10 do rille.metric("loss", i, {{ step = i }}) end
  io.open("{root}/half", "w"):close()
  while not io.open("{root}/rest") do rille.sleep("10ms") end
  for i = 11, 20 do rille.metric("loss", i, {{ step = i }}) end
end)
""")
    process = subprocess.Popen([rille, "run", "away.lua"], env=env, cwd=root, stderr=subprocess.PIPE)
    while process.poll() is None and not os.path.exists(root + "/half"):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    open(root + "/rest", "w").close()
    code, out, err = run("resume", "last")
    away = without_load(metrics())
    check("a call's metrics come after a runner's death, once each",
          away == {("loss", "main/works#1"): [(i, i) for i in range(1, 21)]}, (away, err))

    # A training keeps its own.
    script("train.lua", """
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
return box:call("train", function()
  local dev = rille.device("cpu")
  local model = rille.nn.linear(4, 1):to(dev)
  local opt = rille.optim.sgd(model:parameters(), { lr = 0.1 })
  local x, y = dev:randn { 8, 4 }, dev:randn { 8, 1 }
  local data = { next = function() return x, y end }
  local update = function(a, b)
    local loss = ((model(a) - b) ^ 2):mean()
    loss:backward()
    opt:step()
    return loss
  end
  return rille.train { update = update, data = data, steps = 30, optimizer = opt,
    schedule = function(step) return 0.1 / step end, log_every = 10 }
end)
""")
    code, out, err = run("run", "train.lua")
    trained = without_load(metrics())
    result = json.loads(run("show", "last", "--json")[1]).get("result", {})
    losses = dict(trained.get(("loss", "main/train#1"), []))
    check("rille.train keeps loss, rate and speed of each step", code == 0 and sorted(losses) == list(range(1, 31)) and
          trained["lr", "main/train#1"] == [(i, 0.1 / i) for i in range(1, 31)] and
          len(trained["samples/s", "main/train#1"]) == 30, (code, err, trained))
    check("with the losses that it returns", result and all(losses[l["step"]] == l["loss"] for l in result["losses"]),
          (losses, result))

    # And the report draws them.
    report = json.loads(run("report", "last", "--json")[1])
    drawn = {(s["name"], s["source"]): [(p[0], p[2]) for p in s["points"]] for
        s in report["series"] if not s.get("machine")}
    check("the report has the same", drawn == trained, drawn)
    check("with times in the run", all(0 <= p[1] <= report["run"]["seconds"] for s in report["series"] for
        p in s["points"]))

    code, out, err = run("metrics", "nothing")
    check("a wrong run", code == 1 and "there is no run 'nothing'" in err, err)
    run("rm", last)
    check("rille rm removes them", not os.path.exists(f"{root}/home/runs/{last}"))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
