#!/usr/bin/env python3
"""Kills one part at a time of a run that trains: the worker, the agent, both, these and the keeper, the runner. The run
ends with the losses and the result of the undisturbed one, the part that was not killed goes on, nothing is left.

usage: parts_test.py RILLE SCRIPT"""
import glob, json, os, re, shutil, signal, subprocess, sys, tempfile, time

rille, script = map(os.path.abspath, sys.argv[1:3])
STEPS, EVERY = 400, 10
small = ["--steps", str(STEPS), "--every", str(EVERY), "--seed", "7", "--layers", "1", "--heads", "2", "--width", "32",
         "--context", "16", "--batch", "8"]


class Run:
    def __init__(self, name):
        self.name = name
        self.home = os.path.realpath(tempfile.mkdtemp(prefix="rille-parts-"))
        self.env = dict(os.environ, RILLE_HOME=self.home, XDG_CONFIG_HOME=self.home + "/config", NO_COLOR="1")
        with open(self.home + "/text.txt", "w") as file:
            file.write("abcx cbay abcx abcx cbay " * 800)
        self.logs = []
        self.start("run", script, "--data", self.home + "/text.txt", "--out", self.home + "/out", *small)

    def start(self, *words):
        self.logs.append(open(f"{self.home}/said-{len(self.logs)}", "wb"))
        self.process = subprocess.Popen([rille, *words], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
                                        stdout=self.logs[-1], stderr=subprocess.STDOUT)

    def text(self):
        return "".join(open(log.name, errors="replace").read() for log in self.logs)

    def check(self, ok, why):
        if not ok:
            print(f"not ok - {self.name} (home kept: {self.home}): {why}\n{self.text()[-3000:]}")
            self.process.kill()
            sys.exit(1)

    def wait_for(self, what, condition, limit_s=120):
        until = time.monotonic() + limit_s
        while True:
            if found := condition():
                return found
            self.check(time.monotonic() < until, f"not within {limit_s} s: {what}")
            time.sleep(0.005)

    def query(self, *words):
        done = subprocess.run([rille, *words, "--json"], env=self.env, cwd=self.home, capture_output=True, timeout=60)
        return json.loads(done.stdout)

    def parts(self):
        """{daemon =, keeper =, worker =} by pid, of those that live."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace").split("\0")
            except OSError:
                continue
            if len(words) > 4 and words[1] == "agent" and words[4].startswith(self.home):
                found[words[2]] = int(pid)
        return found

    def published(self):
        """The step of the newest checkpoint that the agent has heard of."""
        newest = -1
        for path in glob.glob(self.home + "/instances/*/calls/*/events.json"):
            try:
                newest = max(newest, int((json.load(open(path))["checkpoint"] or {}).get("step", -1)))
            except (OSError, ValueError, KeyError):
                pass
        return newest

    def end(self):
        self.wait_for("the run's end", lambda: self.process.poll() is not None)
        self.check(self.process.returncode == 0, f"exit code {self.process.returncode}")
        shown = self.query("show", "last")
        self.check(shown["state"] == "done", f"state {shown['state']}")
        losses = {}
        for step, loss in re.findall(r"^step +(\d+) +loss (\S+)", self.text(), re.M):
            self.check(losses.setdefault(step, loss) == loss, f"step {step} has losses {losses[step]} and {loss}")
        first = min(losses, key=int)
        self.begun = len(re.findall(rf"^step +{first} +loss", self.text(), re.M))
        restarts = [e for e in self.query("logs", "last") if e.get("event") == "call_restarted"]
        self.check(self.query("leases") == [], "leases are left")
        self.wait_for("no process is left", lambda: not self.parts(), 10)
        shutil.rmtree(self.home)
        return shown["result"], losses, restarts


calm = Run("undisturbed")
expected, expected_losses, _ = calm.end()
calm.check(len(expected_losses) > 5, f"too few losses: {expected_losses}")
print(f"undisturbed: {expected}")

CASES = [("worker",), ("daemon",), ("daemon", "worker"), ("keeper",), ("keeper", "daemon", "worker"), ("runner",)]
for victims in CASES:
    run = Run(" and ".join(victims))
    run.wait_for("the second checkpoint", lambda: run.published() >= 2 * EVERY)
    before = run.parts()
    run.check(sorted(before) == ["connect", "daemon", "keeper", "worker"], f"parts {before}")
    for victim in victims:
        os.kill(run.process.pid if victim == "runner" else before[victim], signal.SIGKILL)
    if "runner" in victims:
        run.process.wait()
        after = run.parts()
        run.check(after.get("worker") == before["worker"], f"the worker must go on: {before}, {after}")
        run.start("resume", "last")
    elif victims != ("keeper",):
        # The next worker, under the same agent or a new one.
        run.wait_for("another worker", lambda: run.parts().get("worker", before["worker"]) != before["worker"])
    survived = run.published()
    after = run.wait_for("an agent", lambda: (p := run.parts()).get("daemon") and p)
    same_agent = after["daemon"] == before["daemon"]
    run.check(same_agent == ("daemon" not in victims), f"agent {before['daemon']}, then {after['daemon']}")
    if "keeper" in victims and "daemon" not in victims:
        run.check(after.get("keeper") in (None, before["keeper"]), "another keeper beside a living agent")
    run.check(survived >= 2 * EVERY, f"the checkpoint is forgotten: {survived}")
    result, losses, restarts = run.end()
    run.check(result == expected, f"result {result}, undisturbed {expected}")
    for step, loss in losses.items():
        run.check(expected_losses.get(step, loss) == loss, f"step {step}: {loss}, not {expected_losses.get(step)}")
    wanted = 1 if {"daemon", "worker"} & set(victims) else 0
    run.check(len(restarts) == wanted, f"{len(restarts)} restarts, not {wanted}: {restarts}")
    if "runner" not in victims:  # a resumed run receives the log from its beginning
        run.check(run.begun == 1, f"training began {run.begun} times: not from its checkpoint")
    print(f"ok - {run.name}: the same losses, {'the same' if same_agent else 'another'} agent, {wanted} restarts")
