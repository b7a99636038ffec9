#!/usr/bin/env python3
"""`rille metrics` for other programs: TensorBoard's event files, OpenTelemetry's collector, Prometheus' text have the
points that `--json` has. usage: metrics_export_test.py RILLE"""
import json, math, os, shutil, struct, subprocess, sys, tempfile

import event_files, exposition
from collector import Collector
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-export-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")
env.pop("OTEL_EXPORTER_OTLP_HEADERS", None)


def run(*words, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def single(value):
    """As a float of 32 bits has it, and NaN comparable."""
    value = struct.unpack("<f", struct.pack("<f", value))[0]
    return "nan" if math.isnan(value) else value


def number(value):
    return float(value["$num"]) if isinstance(value, dict) else value


try:
    with open(root + "/all.lua", "w") as f:
        f.write("""local rille = require "rille"
for i = 1, 300 do rille.metric("loss", 5 / i, { step = i }) end
rille.metric("accuracy", 0.5)
rille.metric("accuracy", 0.75)
rille.metric('odd "name"', 0 / 0)
rille.metric('odd "name"', 1 / 0)
rille.metric('odd "name"', -1e300)
rille.metric("late", 1, { step = 4294967296 * 1024 })
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
box:call("../x", function() for i = 1, 3 do rille.metric("loss", i, { step = i }) end end)
""")
    code, out, err = run("run", "all.lua")
    check("it runs", code == 0, err)
    last = json.loads(run("ps", "--json")[1])[0]
    folder = f"{root}/home/runs/{last['id']}/metrics"
    with open(folder + "/gpus-1.jsonl", "w") as f:  # as an agent reports them
        f.write('{"source":{"generation":2,"key":"main/c#1","lease":"trainer"}}\n')
        for gpu in (0, 1):
            for name, value in (("gpu_utilization", 90 + gpu), ("gpu_memory_bytes", 1 << 30),
                                ("gpu_power_watts", 300.5)):
                f.write(json.dumps({"at_us": 1732787700123456, "gpu": gpu, "name": name, "value": value}) + "\n")
    series = json.loads(run("metrics", "last", "--json")[1])
    points = [(s["name"], s["source"], p["at_us"], p.get("step", i + 1), number(p["value"]))
              for s in series for i, p in enumerate(s["points"])]
    sources = {s["source"] for s in series}
    check("there are several sources", len(sources) >= 4, sources)

    # TensorBoard.
    code, out, err = run("metrics", "last", "--tensorboard", "board")
    check("event files are written", code == 0 and out == "" and err.count("wrote board/") == len(sources), err)
    found = event_files.below(root + "/board")
    check("a folder for each source, within the run's", len(found) == len(sources) and
          all(os.path.dirname(name) == last["id"] for name in found), list(found))
    check("named so that one sees it", f"{last['id']}/script" in found and
          f"{last['id']}/trainer 2 gpu 0" in found, list(found))
    wanted = sorted((name, round(at / 1e6, 6), step, str(single(v))) for name, _, at, step, v in points
                    if name != 'odd "name"')
    got = sorted((tag, round(wall, 6), step, str(single(v))) for tags in found.values() for tag, list_ in tags.items()
                 for wall, step, v in list_ if tag != 'odd "name"')
    check("every point with its step, its time and its value", got == wanted, [x for x in got if x not in wanted][:5])
    odd = [v for _, _, v in found[f"{last['id']}/script"]['odd "name"']]
    check("also those that are no numbers", math.isnan(odd[0]) and odd[1:] == [math.inf, -math.inf], odd)
    before = {p: open(p, "rb").read() for at, _, names in os.walk(root + "/board") for p in
              (os.path.join(at, n) for n in names)}
    code, out, err = run("metrics", "last", "--tensorboard", "board", "--json")
    check("written again they are the same files", sorted(json.loads(out)["files"]) ==
          sorted(os.path.relpath(p, root) for p in before) and
          all(open(p, "rb").read() == b for p, b in before.items()), out)
    open(root + "/file", "w").close()
    code, out, err = run("metrics", "last", "--tensorboard", "file")
    check("a file is no folder", code == 1 and "file/" in err, (code, err))

    # OpenTelemetry.
    collector = Collector()
    code, out, err = run("metrics", "last", "--otlp", collector.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b,Other = c")
    check("a collector takes them", code == 0 and f"sent {len(points)} points to {collector.url}" in err, err)
    path, headers = collector.requests[0]
    check("at its standard path", path == "/v1/metrics" and len(collector.requests) == 1, collector.requests)
    check("with the headers of the environment", (headers.get("x-key"), headers.get("Other")) == ("a b", "c"), headers)
    came = sorted((name, a["rille.source"], at // 1000, str(v)) for _, name, _, a, at, v in collector.points)
    check("every point", came == sorted((n, s, at, str(float(v))) for n, s, at, _, v in points), came[:5])
    check("said to be of this run", all(r["service.name"] == "rille" and r["rille.run"] == last["id"] and
          r["rille.script"] == root + "/all.lua" for r, *_ in collector.points), collector.points[:1])
    gpus = {(name, unit, a.get("rille.gpu")) for _, name, unit, a, _, _ in collector.points if name.startswith("gpu_")}
    check("GPUs by their numbers, with units", gpus == {(n, u, g) for g in (0, 1) for n, u in (
        ("gpu_utilization", "%"), ("gpu_memory_bytes", "By"), ("gpu_power_watts", "W"))}, gpus)
    run("metrics", "last", "--otlp", collector.url + "/", "--json")
    run("metrics", "last", "--otlp", collector.url + "/other/metrics")
    check("a path is kept", [p for p, _ in collector.requests[1:]] == ["/v1/metrics", "/other/metrics"],
          collector.requests)

    # Many points are several requests.
    with open(root + "/many.lua", "w") as f:
        f.write('local rille = require "rille"\nfor i = 1, 25000 do rille.metric("n", i, { step = i }) end\n')
    run("run", "many.lua")
    collector = Collector()
    code, out, err = run("metrics", "last", "--otlp", collector.url, "--json")
    check("many points in several requests", code == 0 and json.loads(out) == {"points": 25000, "requests": 3}, out)
    check("once each, in order", [v for *_, v in collector.points] == list(range(1, 25001)))

    # Refusals.
    collector = Collector([(503, b"")])
    code, out, err = run("metrics", "last", "--otlp", collector.url)
    check("a collector that is busy is asked again", code == 0 and len(collector.points) == 25000, err)
    collector = Collector([(200, b'{"partialSuccess":{"rejectedDataPoints":"7","errorMessage":"too old"}}')])
    code, out, err = run("metrics", "last", "--otlp", collector.url)
    check("points that it refuses are told", code == 1 and "refused 7 points: too old" in err, err)
    collector = Collector([(401, b"no key")])
    code, out, err = run("metrics", "last", "--otlp", collector.url + "?key=secret", "--json")
    check("and a key that it refuses", code == 1 and json.loads(out)["error"]["kind"] == "auth" and
          "secret" not in out + err, out)
    code, out, err = run("metrics", "last", "--otlp", "http://127.0.0.1:1")
    check("nobody there", code == 1 and "127.0.0.1:1" in err, err)
    code, out, err = run("metrics", "last", "--otlp", collector.url, OTEL_EXPORTER_OTLP_HEADERS="nonsense")
    check("headers that are none", code != 0 and "OTEL_EXPORTER_OTLP_HEADERS" in err and "nonsense" not in err, err)
    for url in ("http://192.0.2.1:4318", "HTTP://127.0.0.1@192.0.2.1/v1/metrics", "192.0.2.1:4318"):
        code, out, err = run("metrics", "last", "--otlp", url, "--json", OTEL_EXPORTER_OTLP_HEADERS="x-key=secret")
        error = json.loads(out)["error"]
        check(f"{url}: headers do not leave this machine in clear", code == 1 and error["kind"] == "config" and
              "would go to 192.0.2.1 in clear" in error["message"] and "https://" in error["hint"] and
              "secret" not in out + err, (code, out, err))
    for url in (collector.url.replace("127.0.0.1", "localhost"), collector.url.replace("//", "//user@")):
        code, out, err = run("metrics", "last", "--otlp", url, OTEL_EXPORTER_OTLP_HEADERS="x-key=secret")
        check(f"{url}: on the loopback they stay on it", "in clear" not in err, err)
    for words in (["--otlp", "http://127.0.0.1:1", "--tensorboard", "x"], ["--format", "csv", "--tensorboard", "x"],
                  ["--format", "csv", "--otlp", "http://127.0.0.1:1"]):
        code, out, err = run("metrics", "last", *words)
        check(f"{' '.join(words)}: one at a time", code == 2, (code, err))

    # Prometheus.
    found = exposition.read(run("metrics", last["id"], "--format", "prometheus")[1])
    last_of = {(l["source"], l["name"]): v for l, v in found["rille_metric"]}
    check("Prometheus' text", last_of["script", "loss"] == 5 / 300 and last_of["script", "accuracy"] == 0.75, last_of)
    check("with DCGM's names", {k for k in found if k.startswith("DCGM")} == {"DCGM_FI_DEV_GPU_UTIL",
          "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"}, list(found))

    # A run without any.
    open(root + "/none.lua", "w").write("return 1\n")
    run("run", "none.lua")
    code, out, err = run("metrics", "last", "--tensorboard", "empty")
    check("none", code == 0 and "this run has no metrics" in err and not os.path.exists(root + "/empty"), err)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
