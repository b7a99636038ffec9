#!/usr/bin/env python3
"""A scheduler takes a rented machine away: on a real Slurm for a job of a higher priority, with a grace and without, by
`scontrol requeue`, and while no runner is there; on the fake Kubernetes by an eviction. Each time the run goes on from
its checkpoint on another machine, no two of its jobs run at once, and none is left.
usage: taken_test.py RILLE slurm|kubernetes [--all]     without --all, on Slurm: one with a grace, one sent back"""
import json, os, shutil, sqlite3, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "workflows")]
import need, slurm
from places import PLACES
from tap import check, finish

rille, name = os.path.abspath(sys.argv[1]), sys.argv[2]
need.met(PLACES[name].missing)
STEPS = 500
# Counts, saves, and says in the end at which step each of its machines has begun.
COUNT = """local rille = require "rille"
local box = rille.rent("b", { provider = "%s", gpu = "%s", ttl = "30m", on_loss = "replace", gpu_check = false })
return box:call("count", { checkpoint = rille.home, args = %d }, function(steps)
  local at = { step = 0, sum = 0, began = "" }
  local state = { at = {
    state = function() return { step = at.step, sum = at.sum, began = at.began } end,
    load_state = function(_, kept) at.step, at.sum, at.began = kept.step, kept.sum, kept.began end,
  } }
  if rille.checkpoint.exists("checkpoints") then rille.checkpoint.load(state, "checkpoints") end
  at.began = at.began .. " " .. at.step
  while at.step < steps do
    rille.sleep(0.02)
    at.step, at.sum = at.step + 1, at.sum + at.step
    local left, leave = rille.preempting()
    if leave or at.step %% 50 == 0 then
      rille.checkpoint.save(state, { directory = "checkpoints", step = at.step })
    end
    if leave then rille.leave() end
  end
  return { sum = at.sum, began = at.began }
end)"""


class Run:
    """One run of it at a place, in a home of its own."""

    def __init__(self, place, gpu, **settings):
        self.place, self.home = place, tempfile.mkdtemp(prefix="rille-taken-home-")
        Path(self.home, "count.lua").write_text(COUNT % (place.provider, gpu, STEPS))
        Path(self.home, "providers.json").write_text(json.dumps({place.provider: {**place.settings(), **settings}}))
        self.env = dict(place.env, RILLE_HOME=self.home + "/rille", XDG_CONFIG_HOME=self.home + "/config", NO_COLOR="1",
                        RILLE_THREADS="1", RILLE_PROVIDERS=self.home + "/providers.json")

    def __enter__(self):
        self.start("run", self.home + "/count.lua")
        return self

    def start(self, *words):
        self.out, self.err = Path(self.home, "out"), Path(self.home, "err")
        with self.out.open("w") as out, self.err.open("w") as err:
            self.runner = subprocess.Popen([rille, "--json", *words], env=self.env, cwd=self.home, stdout=out,
                                           stderr=err)

    def events(self, kind):
        try:
            with sqlite3.connect(f"file:{self.home}/rille/journal.db?mode=ro", uri=True) as db:
                return [json.loads(data) for (data,) in
                        db.execute("SELECT data FROM events WHERE event=? ORDER BY id", [kind])]
        except sqlite3.OperationalError:
            return []

    def until(self, what, holds, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not holds():
            time.sleep(0.05)
        if not holds():
            raise RuntimeError(f"{what}: it does not come to that\n{self.out.read_text()}{self.err.read_text()}")

    def until_saved(self):
        self.until("a checkpoint is kept", lambda: self.events("checkpoint_kept"))

    def kill(self):
        self.runner.kill()
        self.runner.wait()

    def ends(self, what):
        """Gives the steps at which it began."""
        code, out = self.runner.wait(200), self.out.read_text()
        result = json.loads(out).get("result") if code == 0 and out else None
        right = isinstance(result, dict) and result.get("sum") == STEPS * (STEPS - 1) // 2
        check(f"{what}: the run ends with what an undisturbed one gives", right, (code, out, self.err.read_text()))
        return [int(step) for step in result["began"].split()] if right else []

    def left(self):
        """The step at which the call left for another machine, its checkpoint being here."""
        return [e.get("step") for e in self.events("call_left") if e.get("kept")]

    def __exit__(self, *_):
        if self.runner.poll() is None:
            self.kill()
        subprocess.run([rille, "gc", "--now", "last"], env=self.env, cwd=self.home, capture_output=True, timeout=100)
        shutil.rmtree(self.home, ignore_errors=True)


def nothing_left(place, what):
    end = time.monotonic() + 30
    while time.monotonic() < end and place.alive():
        time.sleep(0.1)
    check(f"{what}: nothing is left", not place.alive(), place.alive())


# On Slurm.

def running(cluster):
    return [job for job in cluster.ours() if job[1] == "RUNNING"]


def one_after_the_other(cluster, before, what):
    jobs = [job for job in cluster.ours() if job[0] > before and job[3]]
    apart = all(a[4] <= b[3] for a, b in zip(jobs, jobs[1:]))
    check(f"{what}: in two jobs, one after the other", len({j[0] for j in jobs}) == 2 and apart, jobs)
    return jobs


def newest(cluster):
    return max((job[0] for job in cluster.ours()), default=0)


def by_priority(place, partition, what, **more):
    cluster, before = place.cluster, newest(place.cluster)
    with Run(place, "H100:2", partitions=[partition], **more) as run:
        run.until_saved()
        block = cluster.take(running(cluster)[0][2])
        began, left = run.ends(what), run.left()
        if partition == "low":
            noticed = run.events("preempting")
            check(f"{what}: the grace was a notice", noticed and left and
                  noticed[0]["deadline"] <= time.time() + 31, (noticed, left))
            check(f"{what}: it went on from what it saved then", began == [0, *left], (began, left))
        else:
            check(f"{what}: it went on from its last checkpoint", len(began) == 2 and began[1] > 0 and
                  began[1] % 50 == 0 and not left, (began, left))
        cluster.run("scancel", block)
        jobs = one_after_the_other(cluster, before, what)
        if partition == "rude":
            check(f"{what}: by Slurm, which has not queued it again", jobs[0][1] == "PREEMPTED", jobs)
        nothing_left(place, what)


def sent_back(place):
    """By an operator, where the settings allow it."""
    cluster, before, what = place.cluster, newest(place.cluster), "sent back to the queue"
    with Run(place, "H100:2", partitions=["gpu"], options=["--requeue"]) as run:
        run.until_saved()
        cluster.run("scontrol", "requeue", str(running(cluster)[0][0]))
        began = run.ends(what)
        check(f"{what}: it went on from its last checkpoint", len(began) == 2 and began[1] > 0, began)
        one_after_the_other(cluster, before, what)
        nothing_left(place, what)


def not_sent_back(place):
    cluster = place.cluster
    with Run(place, "H100:2", partitions=["gpu"]) as run:
        run.until_saved()
        job = str(running(cluster)[0][0])
        refused = subprocess.run(["scontrol", "requeue", job], env=cluster.env, capture_output=True, text=True)
        check("without such an option Slurm refuses to send it back", refused.returncode != 0 and
              running(cluster)[0][0] == int(job), refused)
        check("and the run goes on as if nothing was", run.ends("not sent back") == [0])
        nothing_left(place, "not sent back")


def unwatched(place):
    """Its runner is dead when it is taken: what was on the node ends by itself, and nothing starts again there."""
    cluster, before, what = place.cluster, newest(place.cluster), "taken while no runner is there"
    for options in ([], ["--requeue"]):
        with Run(place, "H100:2", partitions=["rude"], **({"options": options} if options else {})) as run:
            run.until_saved()
            node = running(cluster)[0][2]
            run.kill()
            block = cluster.take(node)
            run.until("the job is off its node", lambda: not running(cluster))
            run.until("nothing of it is there", lambda: not [a for a in place.alive() if a not in slurm_states])
            cluster.run("scancel", block)
            run.start("resume", "last")
            began = run.ends(what)
            check(f"{what}: it goes on from its last checkpoint", len(began) == 2 and began[1] > 0, began)
            one_after_the_other(cluster, before, what)
            nothing_left(place, what)
            before = newest(cluster)


slurm_states = ("PENDING", "RUNNING", "COMPLETING", "REQUEUED", "CONFIGURING")


def told_on_the_node(root):
    """A cluster that sends the signal of --signal at once: the batch script asks, and the agent knows."""
    place, what = PLACES["slurm"](root), "announced on the node"
    place.cluster = slurm.Slurm("SlurmctldParameters=preempt_send_user_signal").__enter__()
    try:
        cluster, place.env, place.folder = place.cluster, dict(place.cluster.env), Path(root, "told")
        place.folder.mkdir()
        with Run(place, "H100:2", partitions=["low"]) as run:
            run.until_saved()
            job = running(cluster)[0]
            run.kill()
            block = cluster.take(job[2])
            notice = lambda: list(place.folder.glob("rille-*/notice.json"))
            run.until("the agent gets the notice", notice)
            ends = [j[4] for j in cluster.ours() if j[0] == job[0]][0]
            told = json.loads(notice()[0].read_text())
            check(f"{what}: when Slurm will end the job", told == {"deadline_wall_us": ends * 1_000_000}, (told, ends))
            run.start("resume", "last")
            began, left = run.ends(what), run.left()
            check(f"{what}: a resumed run finds the call, and moves it", began == [0, *left] and left, (began, left))
            cluster.run("scancel", block)
            nothing_left(place, what)
    finally:
        place.cluster.__exit__()


def given_up(place):
    """A job that could not begin before its deadline any more does not wait for ever."""
    cluster, what = place.cluster, "dropped from the queue"
    blocks = [cluster.take(f"fake{n}") for n in (1, 2, 3)]
    cluster.until("the nodes are taken", lambda: cluster.jobs().count("RUNNING") == 3)
    with Run(place, "H100:2", partitions=["low"], options=["--time=10", "--deadline=now+603seconds"]) as run:
        code = run.runner.wait(200)
        said = run.out.read_text() + run.err.read_text()
        check(f"{what}: the rent fails, saying so", code == 1 and "was dropped from the queue (DEADLINE)" in said,
              (code, said))
        cluster.run("scancel", *blocks)
        nothing_left(place, what)


def on_slurm(root):
    with PLACES["slurm"](root) as place:
        by_priority(place, "low", "with a grace")
        sent_back(place)
        if "--all" not in sys.argv:
            return
        by_priority(place, "rude", "at once")
        not_sent_back(place)
        unwatched(place)
        given_up(place)
    told_on_the_node(root)


# On Kubernetes.

def on_kubernetes(root):
    with PLACES["kubernetes"](root) as place:
        what = "evicted"
        with Run(place, "T4", grace="20s") as run:
            run.until_saved()
            pod = place.cluster.pods()[0]
            grace = pod["spec"]["terminationGracePeriodSeconds"]
            check(f"{what}: a pod has the grace of the settings", grace == 20, pod)
            place.cluster.ask("reclaim", id=pod["metadata"]["labels"]["job-name"], in_seconds=20)
            began, left = run.ends(what), run.left()
            noticed = run.events("preempting")
            check(f"{what}: its grace was a notice", noticed and noticed[0]["deadline"] <= time.time() + 21, noticed)
            check(f"{what}: it went on from what it saved then", left and began == [0, *left], (began, left))
            check(f"{what}: in two Jobs", len(place.ordered()) == 2, place.ordered())
            nothing_left(place, what)


root = tempfile.mkdtemp(prefix="rille-taken-")
try:
    on_slurm(root) if name == "slurm" else on_kubernetes(root)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
