#!/usr/bin/env python3
"""The provider `slurm` on a real Slurm of four nodes: the life of a rented job, calls by an agent that outlives its
runner, lost nodes, the queue. What a scheduler takes away: taken_test.py; what a new user gets wrong:
mistakes_here_test.py. usage: slurm_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
import need, slurm
from sshd import Sshd
from tap import check, finish

need.met(slurm.missing)

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-slurm-test-")
instances = Path(root, "instances")
instances.mkdir()
env = {}
BOX = """local rille = require "rille"
local box = rille.rent("b", { provider = "slurm", gpu = "H100:2", ttl = "30m", gpu_check = false })
"""


def settings(**more):
    Path(env["RILLE_PROVIDERS"]).write_text(json.dumps({"slurm": {"directory": str(instances), **more}}))


def run(*words, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=150, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(source, *words, **more):
    Path(root, "script.lua").write_text(source)
    return run("--json", "run", root + "/script.lua", *words, **more)


def result_of(done):
    return json.loads(done[1]).get("result") if done[0] == 0 else None


def folders():
    return sorted(p.name for p in instances.glob("rille-*"))


def marked():
    mark = f"RILLE_INSTANCE={instances}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def sleepers():
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == b"sleep\x001234\x00":
                found.append(entry.name)
        except OSError:
            continue
    return found


def nothing_left(name, cluster):
    end = time.monotonic() + 20
    while time.monotonic() < end and (cluster.jobs() or folders() or marked()):
        time.sleep(0.1)
    left = (cluster.jobs(), folders(), marked())
    check(name, left == ([], [], []), left)


def life(cluster):
    settings(price=1.25)
    offers = [o for o in json.loads(run("offers", "--json")[1]) if o.get("provider") == "slurm"]
    sizes = {(o["id"], o.get("gpu", ""), o["vcpus"], o.get("price_per_hour")) for o in offers}
    check("partitions are offered by size, with their price",
          {("gpu/h100:1", "H100", 1, 1.25), ("gpu/h100:4", "H100", 4, 5.0), ("short/h100:2", "H100", 2, 2.5),
           ("cpu", "", 4, 1.25)} <= sizes, offers)
    done = script(BOX + """
box:exec("make", { argv = { "sh", "-c", "echo made > made.txt" } })
local sum = box:call("sum", { args = { 3, 4 } }, function(list) return list[1] + list[2] end)
box:get("made.txt", "got.txt")
local seen = box:call("see", function()
  return { gpus = os.getenv("CUDA_VISIBLE_DEVICES"), node = os.getenv("SLURMD_NODENAME"),
           where = os.getenv("RILLE_INSTANCE"), secret = os.getenv("A_SECRET") }
end)
return { sum = sum, seen = seen }""", A_SECRET="unsaid")
    result = result_of(done) or {}
    seen = result.get("seen", {})
    check("calls, programs and files work in a job", result.get("sum") == 7, done)
    check("the files are there", Path(root, "got.txt").exists() and Path(root, "got.txt").read_text() == "made\n")
    check("a call sees the job's GPUs and node", seen.get("gpus") in ("0,1", "2,3", "0,2", "1,3") and
          seen.get("node", "").startswith("fake"), seen)
    check("it ran in the instance's folder, without the runner's environment",
          seen.get("where", "").startswith(str(instances)) and seen.get("secret") is None, seen)
    nothing_left("after the run nothing is left", cluster)

    done = script(BOX + """
box:exec("hide", { argv = { "sh", "-c", "env -i setsid sleep 1234 & setsid sleep 1234 & sleep 0.2" } })""")
    check("programs that hide end with the job", done[0] == 0 and not sleepers(), (done, sleepers()))
    data = os.urandom(3 << 20)
    Path(root, "data").write_bytes(data)
    done = script(BOX + 'box:stage("data", "data")\nbox:exec("copy", { argv = { "cp", "data", "copy" } })\n'
                  'box:get("copy", "back")')
    check("bytes arrive as they were sent", done[0] == 0 and Path(root, "back").read_bytes() == data, done)
    nothing_left("and again nothing is left", cluster)


def start(name, source):
    Path(root, name).write_text(source)
    with open(root + "/said", "w") as said:
        return subprocess.Popen([rille, "run", f"{root}/{name}"], env=env, cwd=root, stdout=said, stderr=said)


def said():
    return Path(root, "said").read_text()


def until(holds, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not holds():
        time.sleep(0.05)
    if not holds():
        raise RuntimeError("it does not come to that: " + (said() if Path(root, "said").exists() else ""))


def kill(runner):
    runner.kill()
    runner.wait()


COUNT = """
return box:call("count", function()
  local file = io.open("count", "a") file:write("x") file:close()
  local until_s = os.time() + SECONDS
  while os.time() < until_s do end
  file = io.open("count") return #file:read("*a")
end)"""


def outlives(cluster):
    """The runner is killed while a call runs; the resumed one joins the same call."""
    settings()
    runner = start("long.lua", BOX + COUNT.replace("SECONDS", "4"))
    until(lambda: list(instances.glob("rille-*/work/count")))
    kill(runner)
    check("the job outlives a killed runner", cluster.jobs() == ["RUNNING"] and marked(), cluster.jobs())
    done = run("--json", "resume", "last")
    check("the resumed run joins the call, which ran once", result_of(done) == 1, done)
    nothing_left("and releases the job", cluster)

    runner = start("lost.lua", BOX + 'rille.signal("go")')
    until(lambda: folders())
    kill(runner)
    done = run("release", "last")
    check("a job whose runner is lost is released by its row", done[0] == 0, done)
    nothing_left("and nothing of it is left", cluster)


def loses(cluster):
    """A node goes down under a call: the run goes on in another job, on another node."""
    for name, options in (("which ends the job", []), ("which sends it back to the queue", ["--requeue"])):
        settings(**({"options": options} if options else {}))
        runner = start("loss.lua", BOX.replace("ttl =", 'on_loss = "replace", ttl =') +
                       COUNT.replace("SECONDS", "3"))
        until(lambda: list(instances.glob("rille-*/work/count")))
        node = cluster.run("squeue", "-h", "-o", "%N").split()
        cluster.down(node[0])
        runner.wait(120)
        check(f"a lost node, {name}: the run ends well in another job", runner.returncode == 0, said())
        cluster.up(node[0])
        cluster.until("the node", lambda: cluster.states().count("idle") == 4)
        nothing_left(f"nothing is left of either ({name})", cluster)


def queues(cluster):
    """What is free is not: a rent waits, or does not, as the settings say."""
    settings(wait="1s")
    block = cluster.run("sbatch", "--parsable", "--exclusive", "-N3", "-p", "gpu", "-t", "5", "-o", "/dev/null",
                        "--wrap", "sleep 300").strip()
    cluster.until("the other's job", lambda: cluster.jobs() == ["RUNNING"])
    settings(wait="0s")
    done = script(BOX)
    check("nothing is free, and the rent does not wait", "capacity" in done[1] + done[2], done)
    settings()
    runner = start("queue.lua", BOX + 'return box:call("one", function() return 1 end)')
    cluster.until("our job in the queue", lambda: sorted(cluster.jobs()) == ["PENDING", "RUNNING"])
    cluster.run("scancel", block)
    check("a rent waits in the queue", runner.wait(120) == 0)
    nothing_left("and is released", cluster)


def reserves(cluster):
    """A reservation that a rent names: its job runs there, and an unknown name is an error."""
    settings(wait="20s")
    cluster.run("scontrol", "create", "reservation", "ReservationName=team", "StartTime=now", "Duration=30",
                "Users=root", "Nodes=fake4")
    cluster.until("the reservation", lambda: "reserved" in cluster.states())
    inside = """local rille = require "rille"
local box = rille.rent("b", { provider = "slurm", region = "cpu", gpu = "cpu", ttl = "5m", reservation = "%s" })
return box:call("see", function() return { where = os.getenv("SLURM_JOB_RESERVATION") } end)"""
    done = script(inside % "team")
    check("a rent comes out of the reservation that it names", (result_of(done) or {}).get("where") == "team", done)
    done = script(inside % "nobody")
    said_so = done[1] + done[2]
    check("an unknown reservation is named", done[0] == 1 and "config" in said_so and
          "--reservation=nobody" in said_so and "scontrol show reservation" in said_so, done)
    nothing_left("nothing is left of either", cluster)
    cluster.run("scontrol", "delete", "ReservationName=team")


def through_login(cluster):
    """Slurm's commands on a login node, over a real ssh."""
    with Sshd() as host:
        login = ["ssh", "-T", "-o", "BatchMode=yes", *host.options(), "-p", str(host.port), "-i", f"{host.folder}/user",
                 "-o", f"SetEnv=SLURM_CONF={cluster.folder}/slurm.conf", f"{host.user}@127.0.0.1"]
        settings(via=login)
        Path(root, "data").write_bytes(os.urandom(300_000))
        done = script(BOX + """
box:stage("data", "data")
box:exec("copy", { argv = { "cp", "data", "it's a copy" } })
box:get("it's a copy", "back")
return box:call("node", function() return os.getenv("SLURMD_NODENAME") end)""", SLURM_CONF=root + "/none")
        check("a job by way of a login node", (result_of(done) or "").startswith("fake"), done)
        check("with its files", done[0] == 0 and Path(root, "back").read_bytes() == Path(root, "data").read_bytes())
        nothing_left("and it is released", cluster)


try:
    with slurm.Slurm() as cluster:
        env.update(cluster.env, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
                   RILLE_THREADS="1", RILLE_PROVIDERS=root + "/providers.json")
        parts = (life, outlives, loses, reserves, through_login, queues)
        for part in parts:
            if not os.environ.get("ONLY") or part.__name__ in os.environ["ONLY"]:
                part(cluster)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
