#!/usr/bin/env python3
"""Takes the machine of a running workflow away, kills its runner, or both, at random moments; resumes it; and checks
what a lease that is replaced promises.

Each round: a fresh RILLE_HOME, some such moments, and then the end of the run. Then: the result is that of a calm run,
each machine was set up exactly once, no generation was made twice, the generations are as many as machines were lost
and no more, nothing is left: no lease, no machine, no process.

usage: loss_loop.py RILLE SCRIPT [--rounds N] [--seed S]
"""
import argparse, os, random, re, shutil, signal, subprocess, sys, time

from machines import Home

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("script")
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--seed", type=int, default=1)
options = p.parse_args()
rille, script = os.path.abspath(options.rille), os.path.abspath(options.script)
STEPS = 40


class Round(Home):
    def __init__(self, number):
        self.number = number
        super().__init__(rille, "rille-loss-")
        open(self.home + "/data.txt", "w").write("moon\n")
        self.killed = 0

    def run(self):
        return self.start("run", script, "--steps", str(STEPS), "--source", self.home + "/data.txt")

    def fail(self, why):
        print(f"not ok - round {self.number} (home kept: {self.home}): {why}\n{self.text()[-3000:]}")
        sys.exit(1)

    def take_machine(self):
        for directory in self.instances():
            self.take(directory)

    def play(self, rng, span, moments):
        process = self.run()
        while True:
            if moments:
                moments -= 1
                try:
                    process.wait(timeout=rng.uniform(0.05, span))
                except subprocess.TimeoutExpired:
                    what = rng.choice(["machine", "runner", "both", "both"])
                    if what != "machine" and rng.random() < 0.5:
                        process.kill()
                    if what != "runner":
                        self.take_machine()
                    if what != "machine":
                        process.kill()
                        process.wait()
                        self.killed += 1
            else:
                try:
                    process.wait(timeout=120)
                except subprocess.TimeoutExpired:
                    self.fail("did not end in time")
            if process.poll() is None:
                continue
            if process.returncode == 0:
                return
            if process.returncode != -signal.SIGKILL:
                self.fail(f"ended with exit code {process.returncode}")
            runs = self.json("ps")
            if runs and runs[0]["state"] in ("done", "failed", "cancelled"):
                return
            process = self.start("resume", "last") if runs else self.run()

    def check(self):
        shown = self.json("show", "last")
        want = {"sum": STEPS * (STEPS + 1) // 2, "installed": "moon\n"}
        if shown.get("state") != "done" or shown.get("result") != want:
            self.fail(f"{shown.get('state')}: {shown.get('result')} {shown.get('error')}")
        if self.json("leases"):
            self.fail("a lease is left")
        if self.instances():
            self.fail("a machine is left")
        for _ in range(100):
            if not self.processes(self.home + "/instances"):
                break
            time.sleep(0.02)
        twice = self.rows("SELECT lease,generation,COUNT(*) FROM machines GROUP BY 1,2 HAVING COUNT(*)>1")
        if twice:
            self.fail(f"made twice: {twice}")
        generations = self.rows("SELECT MAX(generation),COUNT(*) FROM machines")[0]
        if generations[1] > self.taken + 1:
            self.fail(f"{self.taken} machines were lost, and {generations[1]} rented")
        if self.rows("SELECT 1 FROM segments WHERE to_us IS NULL"):
            self.fail("the ledger goes on after the end")
        begins = [int(n) for n in re.findall(r"begins at (\d+)", self.text())]
        shutil.rmtree(self.home, ignore_errors=True)
        return generations[1], max(begins + [0])


rng = random.Random(options.seed)
began = time.monotonic()
calm = Round(0)
calm.play(rng, 1, 0)
calm.check()
span = time.monotonic() - began
lost = killed = machines = went_on = 0
for n in range(1, options.rounds + 1):
    r = Round(n)
    r.play(rng, span, rng.randint(1, 4))
    rented, at = r.check()
    lost, killed, machines, went_on = lost + r.taken, killed + r.killed, machines + rented, went_on + (at > 0)
print(f"{options.rounds} rounds: {lost} machines lost, {killed} runners killed, {machines} rented, "
      f"{went_on} rounds went on from a kept checkpoint")
if options.rounds >= 3 and (not lost or machines <= options.rounds):
    sys.exit("not ok - no machine was ever replaced")
if options.rounds >= 10 and not went_on:
    sys.exit("not ok - no round went on from a kept checkpoint")
