#!/usr/bin/env python3
"""What a durable run costs in the large, and a peer: sequential durable steps beside DBOS on SQLite.

usage: durable.py BUILD_DIR [--rounds 3] [--json FILE] [--no-peer]
  replay: a run of 100,000 recorded steps in 64 fibers is killed and resumed; what the resume takes, start-up taken off
  (a resumed run after a crash also checks the file). Fibers: the most memory of a run whose 10,000 fibers sleep at the
  same time. Peer: DBOS (from PyPI, into a virtual environment that is made here and removed), one step after another,
  each durable before the next begins: its own default settings, SQLite in a file beside Rille's.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

STEPS = 100_000
FIBERS = 10_000
REPLAY = """local rille = require "rille"
local list = {}
for i = 1, 64 do list[i] = i end
rille.map("m", list, function(k)
  for i = 1, %d do rille.step("s", function() return i end) end
end)
rille.step("end", function()
  local again = io.open(%%q)
  if again then again:close() return end
  io.open(%%q, "w"):close()
  os.execute("kill -9 $PPID")
end)
""" % (STEPS // 64)
SLEEPERS = """local rille = require "rille"
local list = {}
for i = 1, %d do list[i] = i end
rille.map("m", list, function(k) rille.sleep("nap", %s) end)
"""
SEQUENTIAL = """local rille = require "rille"
for i = 1, %d do rille.step("s", function() return i end) end
"""
DBOS = """import sys, time
from dbos import DBOS
DBOS(config={"name": "bench", "system_database_url": "sqlite:///" + sys.argv[1], "run_admin_server": False,
             "log_level": "ERROR"})

@DBOS.step()
def one(i):
    return i

@DBOS.workflow()
def steps(n):
    for i in range(n):
        one(i)

DBOS.launch()
steps(10)
t = time.perf_counter()
steps(int(sys.argv[2]))
print((time.perf_counter() - t) / int(sys.argv[2]) * 1e6)
DBOS.destroy()
"""


class Bench:
    def __init__(self, build):
        self.rille = os.path.abspath(build + "/rille")
        self.home = tempfile.mkdtemp(prefix="rille-bench-")
        self.env = dict(os.environ, RILLE_HOME=self.home + "/home", XDG_CONFIG_HOME=self.home)

    def script(self, name, text):
        path = f"{self.home}/{name}.lua"
        open(path, "w").write(text)
        return path

    def run(self, *words, fails=False):
        """Seconds, and the most memory in MB."""
        shown = open(self.home + "/out", "w+")
        t = time.perf_counter()
        child = subprocess.Popen([self.rille, *words], env=self.env, stdout=shown, stderr=shown)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - t
        if (child.returncode != 0) != fails:
            shown.seek(0)
            sys.exit(f"rille {' '.join(words)}: exit code {child.returncode}\n{shown.read()[-2000:]}")
        return seconds, used.ru_maxrss / 1024

    def fresh(self):
        shutil.rmtree(self.home + "/home", ignore_errors=True)

    def replay_s(self):
        self.fresh()
        flag = self.home + "/again"
        if os.path.exists(flag):
            os.remove(flag)
        self.run("run", self.script("replay", REPLAY.replace("%q", f'"{flag}"')), fails=True)
        taken, memory = self.run("resume", "last")
        return taken - self.empty_s(), memory

    def empty_s(self):
        return self.run("run", self.script("empty", "local rille = require 'rille'"))[0]

    def fibers_mb(self, count):
        self.fresh()
        return self.run("run", self.script("sleepers", SLEEPERS % (count, '"8s"' if count > 1 else '"1ms"')))[1]

    def step_us(self, count):
        self.fresh()
        return (self.run("run", self.script("sequential", SEQUENTIAL % count))[0] - self.empty_s()) / count * 1e6


class Peer:
    """DBOS in an environment of its own; `why` says why there is none."""

    def __init__(self, home):
        self.why, self.home = "", home
        self.python = home + "/dbos/bin/python"
        try:
            subprocess.run([sys.executable, "-m", "venv", home + "/dbos"], check=True, capture_output=True, text=True)
            subprocess.run([self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "dbos"],
                           check=True, capture_output=True, text=True, timeout=300)
            open(home + "/dbos_steps.py", "w").write(DBOS)
        except (subprocess.SubprocessError, OSError) as e:
            said = (getattr(e, "stderr", "") or str(e)).strip().splitlines()
            self.why = said[-1] if said else type(e).__name__

    def step_us(self, count):
        path = self.home + "/dbos.sqlite"
        if os.path.exists(path):
            os.remove(path)
        out = subprocess.run([self.python, self.home + "/dbos_steps.py", path, str(count)], check=True,
                             capture_output=True, text=True)
        return float(out.stdout.split()[-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--json")
    p.add_argument("--no-peer", action="store_true")
    o = p.parse_args()
    bench = Bench(o.build)
    samples = {}
    add = lambda key, value: samples.setdefault(key, []).append(value)
    try:
        peer = None if o.no_peer else Peer(bench.home)
        for _ in range(o.rounds):
            seconds, memory = bench.replay_s()
            add("replay_s", seconds)
            add("replay_mb", memory)
            add("step_us", bench.step_us(2000))
            if peer and not peer.why:
                add("dbos_step_us", peer.step_us(300))
        add("fibers_mb", bench.fibers_mb(FIBERS))
        add("one_fiber_mb", bench.fibers_mb(1))
    finally:
        shutil.rmtree(bench.home, ignore_errors=True)
    m = {k: statistics.median(v) for k, v in samples.items()}
    print(f"{'':52}{'rille':>10}{'peer':>10}{'ratio':>8}  goal")
    print(f"{'replay of 100,000 recorded steps, s':52}{m['replay_s']:10.2f}{'':18}  < 1 s")
    print(f"{'the most memory in that replay, MB':52}{m['replay_mb']:10.1f}")
    print(f"{'memory of 10,000 sleeping fibers, MB':52}{m['fibers_mb']:10.1f}{'':18}  < 100 MB")
    print(f"{'memory of one, MB':52}{m['one_fiber_mb']:10.1f}")
    name = "durable steps in sequence / DBOS on SQLite, us"
    if "dbos_step_us" in m:
        ratio = m["dbos_step_us"] / m["step_us"]
        print(f"{name:52}{m['step_us']:10.1f}{m['dbos_step_us']:10.1f}{ratio:8.1f}  >= 10")
    else:
        why = "not asked for" if o.no_peer else peer.why
        print(f"{name:52}{m['step_us']:10.1f}  skipped: {why}")
    if o.json:
        json.dump({"medians": m, "rounds": o.rounds}, open(o.json, "w"), indent=1)


main()
