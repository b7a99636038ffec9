#!/usr/bin/env python3
"""Kills a running workflow at random moments, resumes it, and checks the promises of durable runs.

Until N kills have hit: a fresh RILLE_HOME; the workflow is started; after a random delay the runner, an agent, or
both are killed with SIGKILL; it is resumed until it ends. Then: the result equals the undisturbed one; no step that
the journal called done ran again; a call whose agent lived was not started again; no lease is left; no process of the
home is left.

usage: kill_loop.py RILLE SCRIPT [--kills N] [--seed S] [--kills-per-round K] [--target runner|agent|both|any]
                    [--args "--x 1"] [--effects]
"""
import argparse, collections, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time


def environment(home):
    env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home + "/config", NO_COLOR="1")
    return env


# The steps of workflow.lua by the line that each leaves in the file of effects.
STEPS = {"prepare": ("main", "prepare", 1), "flaky": ("main", "flaky", 1), "work1": ("main/part[1]#1", "work", 1),
         "work2": ("main/part[2]#1", "work", 1), "work3": ("main/part[3]#1", "work", 1)}


class Round:
    def __init__(self, options, number):
        self.o = options
        self.home = tempfile.mkdtemp(prefix="rille-kill-")
        self.effects = self.home + "/effects"
        self.number = number
        self.output = []
        self.targets = set()

    def command(self, *words):
        extra = self.o.args.split()
        if self.o.effects:
            extra += ["--effects", self.effects]
        if words[0] == "run":
            return [self.o.rille, "run", self.o.script] + extra
        return [self.o.rille] + list(words)

    def start(self, *words):
        log = open(self.home + f"/out-{len(self.output)}", "wb")
        self.output.append(log.name)
        return subprocess.Popen(self.command(*words), env=environment(self.home), stdout=log, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, cwd=self.home)

    def query(self, *words):
        r = subprocess.run(self.command(*words, "--json"), env=environment(self.home), capture_output=True, timeout=60)
        try:
            return json.loads(r.stdout)
        except json.JSONDecodeError:
            return None

    def processes(self):
        """Processes that belong to this home's instances, by the marker in their environment."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                env = open(f"/proc/{pid}/environ", "rb").read()
                line = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"RILLE_INSTANCE={self.home}".encode() in env or (self.home in line and "agent" in line):
                found.append((int(pid), line.strip()))
        return found

    def kill_agents(self):
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def done_steps(self):
        shown = self.query("show", "last")
        if not shown:
            return set()
        return {(e["fiber"], e["name"], e["occurrence"]) for e in shown.get("entries", [])
                if e["kind"] == "step" and e["state"] == "done"}

    def counts(self):
        if not os.path.exists(self.effects):
            return collections.Counter()
        return collections.Counter(open(self.effects).read().split())

    def text(self):
        return "".join(open(p, errors="replace").read() for p in self.output)

    def fail(self, why):
        print(f"not ok - round {self.number} (home kept: {self.home}): {why}")
        print(self.text()[-3000:])
        sys.exit(1)


def final_value(r):
    shown = r.query("show", "last")
    if not shown or shown.get("state") != "done":
        return None
    return json.dumps(shown.get("result"), sort_keys=True)


def losses(r):
    """step -> loss, from every line 'step N loss X'; a repeated step must give the same."""
    seen = {}
    for step, loss in re.findall(r"step\s+(\d+).*?loss\s+([0-9.]+)", r.text()):
        if seen.setdefault(int(step), loss) != loss:
            r.fail(f"step {step} had loss {seen[int(step)]} and then {loss}")
    return seen


def play(options, number, rng, span):
    r = Round(options, number)
    process = r.start("run")
    kills = 0
    finished_steps = {}
    while True:
        if kills < options.kills_per_round:
            try:
                process.wait(timeout=rng.uniform(0.0, span))
            except subprocess.TimeoutExpired:
                target = options.target if options.target != "any" else rng.choice(["runner", "agent", "both"])
                if target in ("agent", "both"):
                    r.kill_agents()
                if target in ("runner", "both"):
                    process.kill()
                    process.wait()
                kills += 1
                r.targets.add(target)
                if target == "agent":
                    continue
        else:
            try:
                process.wait(timeout=options.timeout)
            except subprocess.TimeoutExpired:
                r.fail("did not end in time")
        if process.poll() is None:
            continue
        if process.returncode == 0:
            break
        if process.returncode != -signal.SIGKILL:
            r.fail(f"ended with exit code {process.returncode}")
        shown = r.query("show", "last") or {}
        if shown.get("state") in ("done", "failed", "cancelled"):
            break  # killed between the end of the run and that of its process
        before, counts = r.done_steps(), r.counts()
        for step in before:
            finished_steps.setdefault(step, None)
        if not r.query("ps"):
            process = r.start("run")  # killed before the run began
        else:
            if options.effects:
                for name, done in STEPS.items():
                    if done and done in before and finished_steps.get(done) is None:
                        finished_steps[done] = counts[name]
            process = r.start("resume", "last")
    value = final_value(r)
    if value is None:
        r.fail("the run did not end as done")
    if options.effects:
        for name, step in STEPS.items():
            done = finished_steps.get(step)
            if done is not None and r.counts()[name] != done:
                r.fail(f"the finished step {name} ran again")
    leases = r.query("leases")
    if leases:
        r.fail(f"leases are left: {leases}")
    for _ in range(50):
        left = r.processes()
        if not left:
            break
        time.sleep(0.02)
    else:
        r.fail(f"processes are left: {left}")
    seen = losses(r)
    # With only the runner killed, the agent's process works on: a call that began again would be an event.
    if options.target == "runner" or r.targets == {"runner"}:
        restarted = [e for e in r.query("logs", "last") or [] if e.get("event") == "call_restarted"]
        if restarted:
            r.fail(f"the agent lived, but its call was started again: {restarted}")
    shutil.rmtree(r.home, ignore_errors=True)
    return value, seen, kills


def main():
    p = argparse.ArgumentParser()
    p.add_argument("rille")
    p.add_argument("script")
    p.add_argument("--kills", type=int, default=10)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--kills-per-round", type=int, default=1)
    p.add_argument("--target", default="any")
    p.add_argument("--args", default="")
    p.add_argument("--effects", action="store_true")
    p.add_argument("--timeout", type=float, default=180)
    options = p.parse_args()
    options.rille, options.script = os.path.abspath(options.rille), os.path.abspath(options.script)
    rng = random.Random(options.seed)

    calm = argparse.Namespace(**{**vars(options), "kills_per_round": 0})
    began = time.monotonic()
    expected, expected_losses, _ = play(calm, 0, rng, 1)
    span = time.monotonic() - began
    print(f"undisturbed: {span:.2f} s, result {expected[:200]}")
    kills = 0
    i = 0
    while kills < options.kills:
        i += 1
        value, seen, n = play(options, i, rng, span)
        kills += n
        if value != expected:
            print(f"not ok - round {i}: result {value}, expected {expected}")
            sys.exit(1)
        for step, loss in seen.items():
            if expected_losses.get(step, loss) != loss:
                print(f"not ok - round {i}: step {step} has loss {loss}, undisturbed {expected_losses[step]}")
                sys.exit(1)
    print(f"ok - {i} rounds, {kills} kills, every result equal, 0 leases left, 0 processes left")


if __name__ == "__main__":
    main()
