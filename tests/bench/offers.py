#!/usr/bin/env python3
"""`rille offers` from its start to the table, out of the cache, beside `rille --version` and, where a Python that has
SkyPilot is named, beside `python -c "import sky"`: medians of interleaved starts.

usage: offers.py BUILD_DIR [--rows 100000] [--rounds 30] [--sky PYTHON] [--json FILE]
  --sky: of a virtual environment with `pip install skypilot`
The query by itself, warm and cold: ninja -C BUILD_DIR bench_catalogue && BUILD_DIR/tests/bench/bench_catalogue
"""
import argparse
import http.server
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

MODELS = [("A100", 80), ("H100", 80), ("H200", 141), ("T4", 16), ("L4", 24), ("V100", 16)]


def stock(rows):
    dice = random.Random(1)
    for i in range(rows):
        model, gb = dice.choice(MODELS)
        yield {"provider": "x", "id": f"t{i}", "gpu": model, "gpu_count": 2 ** dice.randrange(4), "vcpus": 8,
               "gpu_memory_bytes": gb << 30, "region": f"r{i % 30}", "price_micros_per_hour": dice.randrange(10**8)}


def serve(rows):
    answer = json.dumps({"offers": list(stock(rows))}, separators=(",", ":")).encode()

    class Cloud(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def took_ms(words, env):
    begin = time.perf_counter()
    done = subprocess.run(words, env=env, capture_output=True)
    assert done.returncode == 0, (words, done.stderr[-500:])
    return (time.perf_counter() - begin) * 1000


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rows", type=int, default=100_000)
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--sky")
    p.add_argument("--json")
    o = p.parse_args()
    rille, root = os.path.abspath(o.build + "/rille"), tempfile.mkdtemp(prefix="rille-bench-")
    env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root, RILLE_PROVIDERS=root + "/providers.json")
    server = serve(o.rows)
    try:
        with open(root + "/providers.json", "w") as f:
            json.dump({"remote": {"url": f"http://127.0.0.1:{server.server_port}", "traits": {"dead_man": "provider"}}},
                      f)
        asked = took_ms([rille, "offers"], env)
        kept = [rille, "offers", "--max-age", "1h"]
        sides = {"rille --version": [rille, "--version"], "rille offers": kept,
                 "rille offers --gpu A100:8": [*kept, "--gpu", "A100:8"],
                 "rille offers --gpu any --rank price_per_tflop": [*kept, "--gpu", "any", "--rank", "price_per_tflop"]}
        if o.sky:
            sides["python -c 'import sky'"] = [o.sky, "-c", "import sky"]
        times = {name: [] for name in sides}
        for _ in range(o.rounds):
            for name, words in sides.items():
                times[name].append(took_ms(words, env))
        told = {"rows": o.rows, "rounds": o.rounds, "load": os.getloadavg()[0],
                "file_bytes": os.path.getsize(root + "/home/cache/offers"), "asking_ms": asked,
                "ms": {name: {"median": statistics.median(t), "least": min(t)} for name, t in times.items()}}
        for name, ms in told["ms"].items():
            print(f"{name:48} {ms['median']:8.1f} ms median, {ms['least']:8.1f} least")
        print(f"{o.rows} offers, {told['file_bytes'] / 1e6:.1f} MB, load {told['load']:.1f}; to ask and keep them took "
              f"{asked:.0f} ms")
        if o.json:
            with open(o.json, "w") as f:
                json.dump(told, f, indent=1)
    finally:
        server.shutdown()
        shutil.rmtree(root, ignore_errors=True)


main()
