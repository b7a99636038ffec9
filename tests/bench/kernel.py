#!/usr/bin/env python3
"""What user kernels cost on the CPU. usage: kernel.py BUILD [--rounds N] [--json FILE]

Runs bench_kernel (ninja -C BUILD bench_kernel) and kernel_calls.lua, and prints a table with the goals.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOALS = [
    ("switch_ns_256", "a switch of a fiber at a barrier, 256 threads, ns", "<= 5"),
    ("switch_ns_32", "with 32 threads", ""),
    ("switch_ns_1024", "with 1024 threads", ""),
    ("shuffle_ns_256", "a shuffle, each thread, 256 threads, ns", ""),
    ("saxpy_cache", "saxpy in the cache, speed beside a plain loop", ">= 0.8"),
    ("saxpy_memory", "saxpy in memory", ">= 0.8"),
    ("saxpy_memory_threads", "saxpy in memory, all threads", ">= 0.8"),
    ("curve_cache", "square root and division in the cache", ">= 0.8"),
    ("first_beyond_ms", "first compilation beyond an empty file's, ms of CPU", "<= 150"),
    ("cached_ms", "a kernel from the disk, ms of CPU", "<= 1"),
    ("go_ns", "go(n, a, x, y) from Lua, ns", ""),
    ("launch_ns", "k:launch(shape, n, a, x, y) from Lua, ns", ""),
    ("add_ns", "y:add_(x) from Lua, for comparison, ns", ""),
    ("go_lua_bytes", "Lua memory that go() takes, bytes", "0"),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    bench = args.build.resolve() / "tests/bench/bench_kernel"
    runner = args.build.resolve() / "tests/lua/lua_runner"
    numbers = json.loads(subprocess.check_output([bench, str(args.rounds)]))
    with tempfile.TemporaryDirectory() as home:
        out = subprocess.run([runner, HERE / "kernel_calls.lua"], capture_output=True, text=True,
                             env={"RILLE_HOME": home, "PATH": "/usr/bin:/bin"}).stdout
    numbers.update(json.loads(next(line for line in out.splitlines() if line.startswith("{"))))
    for key, text, goal in GOALS:
        print(f"| {text} | {numbers[key]:.3g} | {goal} |")
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
