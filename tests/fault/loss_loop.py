#!/usr/bin/env python3
"""Takes the machine of a running workflow away, kills its runner, or both, at random moments; resumes it; and checks
what a lease that is replaced promises.

Each round: a fresh RILLE_HOME, some such moments, and then the end of the run. Then: the result is that of a calm run,
each machine was set up exactly once, no generation was made twice, the generations are as many as machines were lost
and no more, nothing is left: no lease, no machine, no process.

usage: loss_loop.py RILLE SCRIPT [--rounds N] [--seed S]
"""
import argparse, glob, json, os, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("script")
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--seed", type=int, default=1)
options = p.parse_args()
rille, script = os.path.abspath(options.rille), os.path.abspath(options.script)
STEPS = 40


class Round:
    def __init__(self, number):
        self.number = number
        self.home = tempfile.mkdtemp(prefix="rille-loss-")
        self.env = dict(os.environ, RILLE_HOME=self.home, XDG_CONFIG_HOME=self.home + "/config", NO_COLOR="1")
        open(self.home + "/data.txt", "w").write("moon\n")
        self.log = open(self.home + "/out", "wb")
        self.lost = self.killed = 0

    def start(self, *words):
        return subprocess.Popen([rille, *words], env=self.env, stdout=self.log, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, cwd=self.home)

    def run(self):
        return self.start("run", script, "--steps", str(STEPS), "--source", self.home + "/data.txt")

    def json(self, *words):
        r = subprocess.run([rille, *words, "--json"], env=self.env, capture_output=True, timeout=60)
        return json.loads(r.stdout)

    def text(self):
        return open(self.home + "/out", errors="replace").read()

    def fail(self, why):
        print(f"not ok - round {self.number} (home kept: {self.home}): {why}\n{self.text()[-3000:]}")
        sys.exit(1)

    def instances(self):
        return glob.glob(self.home + "/instances/i-*")

    def processes(self, directory):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                env = open(f"/proc/{pid}/environ", "rb").read()
                line = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"RILLE_INSTANCE={directory}".encode() in env or (directory in line and " agent " in line):
                found.append(int(pid))
        return found

    def take_machine(self):
        """In one instant it is not there any more; then what runs on it ends."""
        for directory in self.instances():
            gone = self.home + f"/lost-{self.lost}"
            try:
                os.rename(directory, gone)
            except OSError:
                continue
            self.lost += 1
            for pid in self.processes(directory):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            shutil.rmtree(gone, ignore_errors=True)

    def rows(self, sql):
        db = sqlite3.connect(self.home + "/journal.db")
        out = db.execute(sql).fetchall()
        db.close()
        return out

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
        if generations[1] > self.lost + 1:
            self.fail(f"{self.lost} machines were lost, and {generations[1]} rented")
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
    lost, killed, machines, went_on = lost + r.lost, killed + r.killed, machines + rented, went_on + (at > 0)
print(f"{options.rounds} rounds: {lost} machines lost, {killed} runners killed, {machines} rented, "
      f"{went_on} rounds went on from a kept checkpoint")
if options.rounds >= 3 and (not lost or machines <= options.rounds):
    sys.exit("not ok - no machine was ever replaced")
if options.rounds >= 10 and not went_on:
    sys.exit("not ok - no round went on from a kept checkpoint")
