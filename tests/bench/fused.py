#!/usr/bin/env python3
"""A chain of eight element-wise operations beside PyTorch. usage: fused.py RILLE [--threads 2] [--json FILE]

Rille one by one and compiled (fused.lua), torch eager and compiled where RILLE_TORCH_PYTHON names a Python with torch.
The floor is one read and one write of each element: torch's copy, measured here.
"""
import argparse, json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = """
import json, sys, time, torch
torch.set_num_threads(int(sys.argv[1])); out = []
for n in 65536, 4194304:
    x, b = torch.randn(n // 1024, 1024), torch.randn(1024)
    def chain(a): return (((a * 2 + b).relu() * a) - 0.5).clamp(-3, 3).abs() * 0.25
    ways = {"eager": chain, "copy": lambda a: a.clone()}
    if sys.argv[2] == "compile": ways["compile"] = torch.compile(chain)
    best, calls = {w: 1e9 for w in ways}, 2 if n > 1e6 else 50
    for _ in range(40):
        for w, f in ways.items():
            t = time.perf_counter()
            for _ in range(calls): f(x)
            best[w] = min(best[w], (time.perf_counter() - t) / calls)
    out.append(dict(best, elements=n))
print(json.dumps(out))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rille")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--json")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, RILLE_HOME=home, RILLE_THREADS=str(o.threads))
        done = subprocess.run([o.rille, "--json", "run", HERE + "/fused.lua"], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        rows = json.loads(done.stdout)["result"]
    if python := os.environ.get("RILLE_TORCH_PYTHON"):
        peer = subprocess.run([python, "-c", PEER, str(o.threads), "no" if o.no_compile else "compile"],
                              capture_output=True, text=True, check=True)
        for row, torch in zip(rows, json.loads(peer.stdout)):
            row.update({"torch_" + k if k != "copy" else "floor": v for k, v in torch.items() if k != "elements"})
    for row in rows:
        ours = row["compiled"]
        print(f"{row['elements']:>8} elements: compiled {ours * 1e6:8.1f} us; " + ", ".join(
            f"{k} {v * 1e6:.1f} (ratio {ours / v:.2f})" for k, v in row.items() if k not in ("elements", "compiled")))
    if o.json:
        with open(o.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
