#!/usr/bin/env python3
"""all_reduce of f32 on two processes of this machine, beside PyTorch's gloo: medians in microseconds, and gloo's share
(above 1: Rille takes less time). The two take turns, so that what else the machine does meets both.
usage: RILLE_TORCH_PYTHON=... collective.py BUILD [--world 2] [--rounds 3]"""
import argparse, json, os, statistics, subprocess, sys

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--world", type=int, default=2)
parser.add_argument("--rounds", type=int, default=3)
args = parser.parse_args()
python = os.environ.get("RILLE_TORCH_PYTHON")
if not python:
    sys.exit("RILLE_TORCH_PYTHON names a Python with torch")

GLOO = r"""
import os, statistics, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    out = []
    for name, size, times in (("4KB", 1 << 10, 3000), ("1MB", 1 << 18, 400), ("64MB", 1 << 24, 15)):
        t, took = torch.zeros(size), []
        for i in range(-(times // 5) - 2, times):
            dist.barrier()
            since = time.perf_counter()
            dist.all_reduce(t)
            if i >= 0: took.append((time.perf_counter() - since) * 1e6)
        out.append(f'"{name}": {statistics.median(took):.1f}')
    if rank == 0: print("{" + ", ".join(out) + "}", flush=True)
    dist.destroy_process_group()
if __name__ == "__main__":
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, (int(sys.argv[1]), port), nprocs=int(sys.argv[1]))
"""
script = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"rille-gloo-{os.getpid()}.py")
open(script, "w").write(GLOO)


def run(*command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                     env=dict(os.environ, GLOO_SOCKET_IFNAME="lo")).stdout.strip().splitlines()[-1])


program = os.path.join(args.build, "tests", "bench", "bench_collective")
found = {"shared memory": [], "tcp": [], "gloo": []}
for _ in range(args.rounds):
    found["shared memory"].append(run(program, str(args.world)))
    found["tcp"].append(run(program, str(args.world), "tcp"))
    found["gloo"].append(run(python, script, str(args.world)))
os.unlink(script)
medians = {kind: {size: statistics.median(r[size] for r in rounds) for size in ("4KB", "1MB", "64MB")}
           for kind, rounds in found.items()}
print(json.dumps({"world": args.world, "rounds": args.rounds, "microseconds": medians, "gloo_over_rille": {
    kind: {size: round(medians["gloo"][size] / medians[kind][size], 2) for size in medians[kind]}
    for kind in ("shared memory", "tcp")}}, indent=1))
