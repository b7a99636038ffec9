#!/usr/bin/env python3
"""Announces that the machine of a training will be taken away, takes it at the announced time if it is still there, and
kills the runner at random moments before, between and after; resumes it; and checks what a notice promises.

Each round: a fresh RILLE_HOME, some such moments, and then the end of the run. Then: all losses are those of a calm
run, bit for bit; a call that left in time did no more than a few steps twice, and only machines that were taken cost
more; no generation was made twice; nothing is left: no lease, no machine, no process.

usage: notice_loop.py RILLE SCRIPT [--rounds N] [--seed S]
"""
import argparse, os, random, shutil, signal, subprocess, sys, time

from machines import Home

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("script")
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--seed", type=int, default=1)
options = p.parse_args()
rille, script = os.path.abspath(options.rille), os.path.abspath(options.script)
FEW = 5       # steps between the checkpoint of a notice and the end of the call


class Round(Home):
    def __init__(self, number):
        self.number = number
        super().__init__(rille, "rille-notice-", RILLE_THREADS="1")
        self.trace = self.home + "/trace"
        self.killed = self.told = 0
        self.announced = {}           # folder -> when it is taken

    def go_on(self):
        runs = self.json("ps")
        return self.start("resume", "last") if runs else self.start("run", script, "--trace", self.trace)

    def fail(self, why):
        print(f"not ok - round {self.number} (home kept: {self.home}): {why}")
        print(self.text()[-3000:])
        sys.exit(1)

    def announce(self, seconds):
        for directory in self.instances():
            told = subprocess.run([rille, "agent", "notice", "--dir", directory, "--in", f"{seconds:.3f}s"],
                                  env=self.env, capture_output=True)
            if told.returncode == 0:  # else it has just gone
                self.told += 1
                self.announced[directory] = time.monotonic() + seconds

    def take_announced(self):
        for directory, when in list(self.announced.items()):
            if time.monotonic() < when:
                continue
            del self.announced[directory]
            self.take(directory)

    def wait(self, process, seconds):
        """Until then, or the process's end; what has been announced happens meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and process.poll() is None:
            self.take_announced()
            time.sleep(0.01)

    def play(self, rng, span, moments):
        process = self.go_on()
        for _ in range(moments):
            self.wait(process, rng.uniform(0.2, span))
            self.announce(rng.uniform(1, 5))
            if rng.random() < 0.6:
                self.wait(process, rng.uniform(0, 1.5))
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    self.killed += 1
                    self.wait(subprocess.Popen(["sleep", str(rng.choice([0, 0.3, 5]))]), 10)
            if process.poll() == -signal.SIGKILL:
                process = self.go_on()
        self.wait(process, 120)
        if process.poll() is None:
            self.fail("did not end in time")
        # A runner that was killed after its run had ended leaves nothing to resume.
        if process.returncode and not (self.killed and self.json("show", "last").get("state") == "done"):
            self.fail(f"ended with exit code {process.returncode}")

    def play_plainly(self):
        """One notice in the middle, with time to leave, and no process killed."""
        process = self.go_on()
        while process.poll() is None and (not os.path.exists(self.trace) or len(open(self.trace).readlines()) < 50):
            self.wait(process, 0.05)
        self.announce(4)
        self.wait(process, 120)
        if process.poll() != 0:
            self.fail(f"ended with exit code {process.poll()}")

    def steps_again(self):
        """How many steps were done twice each time that the training began again."""
        steps = [int(line) for line in open(self.trace)]
        if steps[0] != 1 or set(steps) != set(range(1, max(steps) + 1)):
            self.fail("not every step was done")
        return [a - b + 1 for a, b in zip(steps, steps[1:]) if b != a + 1]

    def check(self, want):
        shown = self.json("show", "last")
        if shown.get("state") != "done" or (want and shown.get("result") != want):
            self.fail(f"{shown.get('state')}: {str(shown.get('result'))[:300]} {shown.get('error')}")
        again = self.steps_again()
        if sum(n > FEW for n in again) > self.taken:
            self.fail(f"{self.taken} machines were taken; steps done twice: {again}")
        if self.json("leases") or self.instances():
            self.fail("a lease or a machine is left")
        for _ in range(100):
            if not self.processes(self.home + "/instances"):
                break
            time.sleep(0.02)
        else:
            self.fail("a process is left")
        if self.rows("SELECT lease,generation,COUNT(*) FROM machines GROUP BY 1,2 HAVING COUNT(*)>1"):
            self.fail("a generation was made twice")
        left = self.rows("SELECT COUNT(*) FROM events WHERE event='call_left'")[0][0]
        machines = self.rows("SELECT COUNT(*) FROM machines")[0][0]
        if machines > 1 + self.told:
            self.fail(f"{self.told} notices, and {machines} machines")
        shutil.rmtree(self.home, ignore_errors=True)
        return shown["result"], left, sum(again)


rng = random.Random(options.seed)
began = time.monotonic()
calm = Round(0)
calm.play(rng, 1, 0)
want, _, _ = calm.check(None)
span = time.monotonic() - began
told = taken = killed = moved = twice = 0
for n in range(1, options.rounds + 1):
    r = Round(n)
    if n == 1:
        r.play_plainly()
    else:
        r.play(rng, span, rng.randint(1, 3))
    _, left, again = r.check(want)
    told, taken, killed, moved, twice = told + r.told, taken + r.taken, killed + r.killed, moved + left, twice + again
print(f"{options.rounds} rounds: {told} notices, {moved} times the work left before the end, {taken} machines taken "
      f"with work on them, {killed} runners killed, {twice} steps done twice")
if not moved:
    sys.exit("not ok - no notice was ever acted upon")
