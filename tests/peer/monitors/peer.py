#!/usr/bin/env python3
"""What monitors are given is read by those of others: `/metrics` and `--format prometheus` by promtool, event files by
TensorBoard's own reader, OTLP's JSON by OpenTelemetry's messages. usage: peer.py RILLE   (environment `monitors`)"""
import http.server, json, math, os, shutil, signal, subprocess, sys, tempfile, threading, urllib.request

sys.path.insert(0, os.path.abspath(os.path.dirname(__file__) + "/../../cli"))
from need import met  # noqa: E402
from tap import check, finish  # noqa: E402

met(lambda: "" if shutil.which("promtool") else "promtool not found: apt-get install prometheus")

from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-monitors-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")
bodies = []


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def promtool(text):
    r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


try:
    with open(root + "/all.lua", "w") as f:
        f.write("""local rille = require "rille"
for i = 1, 200 do rille.metric("loss", 5 / i, { step = i }) end
rille.metric('odd "name" \\\\', 0 / 0)
rille.metric("accuracy", 0.75)
rille.metric("accuracy", 1 / 0)
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
box:call("train", function() for i = 1, 3 do rille.metric("loss", i, { step = i }) end end)
""")
    code, out, err = run("run", "all.lua")
    check("it runs", code == 0, err)
    run_id = json.loads(run("ps", "--json")[1])[0]["id"]
    with open(f"{root}/home/runs/{run_id}/metrics/gpus-1.jsonl", "w") as f:  # as an agent reports them
        f.write('{"source":{"generation":2,"key":"main/c#1","lease":"trainer"}}\n')
        for gpu in (0, 1):
            for name in ("gpu_utilization", "gpu_memory_bytes", "gpu_power_watts"):
                f.write(json.dumps({"at_us": 1732787700123456, "gpu": gpu, "name": name, "value": 90 + gpu}) + "\n")
    series = json.loads(run("metrics", "last", "--json")[1])
    count = sum(len(s["points"]) for s in series)

    check("promtool takes the text of a run", *[(r[0] == 0, r) for r in [promtool(
        run("metrics", "last", "--format", "prometheus")[1])]][0])
    served = subprocess.Popen([rille, "serve", "--json", "--listen", "127.0.0.1:0"], env=env, cwd=root, text=True,
                              stdout=subprocess.PIPE)
    address = json.loads(served.stdout.readline())["address"]
    text = urllib.request.urlopen(address + "metrics").read().decode()
    served.send_signal(signal.SIGINT)
    served.wait(timeout=30)
    check("and that of rille serve", *[(r[0] == 0, r) for r in [promtool(text)]][0])
    check("which has all families", {"rille_runs", "rille_spent", "rille_run_spent", "rille_price_per_hour",
          "rille_metric", "DCGM_FI_DEV_GPU_UTIL"} <=
          {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}, text)

    run("metrics", "last", "--tensorboard", "board")
    read = 0
    for at, _, names in os.walk(root + "/board"):
        if not names:
            continue
        accumulator = EventAccumulator(at, size_guidance={"tensors": 0, "scalars": 0})
        accumulator.Reload()
        for tag in accumulator.Tags()["tensors"] + accumulator.Tags()["scalars"]:
            of_tensors = tag in accumulator.Tags()["tensors"]
            events = accumulator.Tensors(tag) if of_tensors else accumulator.Scalars(tag)
            got = [(e.step, float(tensor_util.make_ndarray(e.tensor_proto)) if of_tensors else e.value) for e in events]
            read += len(got)
            if tag == "loss" and len(got) == 200:
                check("TensorBoard reads the losses", all(step == i + 1 and math.isclose(v, 5 / step, rel_tol=1e-6)
                      for i, (step, v) in enumerate(got)), got[:3])
    check("and every other point", read == count, (read, count))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code, out, err = run("metrics", "last", "--otlp", f"http://127.0.0.1:{server.server_port}")
    points = []
    for body in bodies:
        request = json_format.Parse(body, ExportMetricsServiceRequest(), ignore_unknown_fields=False)
        for of_resource in request.resource_metrics:
            for of_scope in of_resource.scope_metrics:
                for metric in of_scope.metrics:
                    points += [(metric.name, p.time_unix_nano, p.as_double) for p in metric.gauge.data_points]
    wanted = [(s["name"], p["at_us"] * 1000, float(p["value"]["$num"] if isinstance(p["value"], dict) else p["value"]))
              for s in series for p in s["points"]]
    check("OpenTelemetry's messages have every point", code == 0 and
          sorted(map(str, points)) == sorted(map(str, wanted)), (err, points[:3], wanted[:3]))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
