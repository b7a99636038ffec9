#!/usr/bin/env python3
"""Ranks on machines of their own, without a common folder, keep their checkpoints in one store: each machine sends the
share of its rank, any number of ranks goes on from there, and whatever is killed, what `latest.json` names is whole.
The store is moto. By a Python that has it. usage: shares_test.py RILLE [--all]"""
import atexit, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time

import boto3

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE] + [f"{HERE}/../../{folder}" for folder in ("contract/fakes", "cli", "fault", "workflows")]
import foreign  # noqa: E402
from machines import Home  # noqa: E402
from ports import free_ports  # noqa: E402
from tap import check, finish  # noqa: E402

rille = os.path.abspath(sys.argv[1])
moto = foreign.Moto()
atexit.register(moto.close)
objects = boto3.client("s3", endpoint_url=moto.endpoint, region_name=moto.region, aws_access_key_id=foreign.ID,
                       aws_secret_access_key=foreign.SECRET)
root = tempfile.mkdtemp(prefix="rille-shares-")

# Layer 1 is frozen: 64 KB of the model's 97.
SCRIPT = """
local rille = require "rille"
local args = rille.args { count = 4, steps = 8, every = 4, store = "", out = "", port = 29500 }
local gang = rille.cluster("gang", { count = args.count, gpu = "cpu", provider = "local", ttl = "1h" })
gang:each("ranks", function(box, index)
  box:call("train", { checkpoint = args.store, args = { rank = index - 1, world = args.count, steps = args.steps,
    every = args.every, address = "127.0.0.1:" .. args.port } }, function(o)
    local dev, nn = rille.device("cpu"), rille.nn
    local comm = rille.communicator { rank = o.rank, world = o.world, address = o.address, device = dev,
      token = ("7"):rep(32), timeout = "2m" }
    local model = nn.sequential { nn.linear(128, 128, { seed = 1, bias = false }), nn.linear(128, 64, { seed = 2 }) }
    model:to(dev)
    local trained = {}
    for _, p in ipairs(model:parameters()) do if p.name:find "^2" then trained[#trained + 1] = p end end
    local opt = rille.optim.adamw(trained, { lr = 1e-2 })
    local source = rille.device("cpu")
    source:seed(11)
    local data = rille.data.arrays({ source:randn { 48, 128 } }, { batch = 24 / o.world, seed = 5, split = 0 })
    rille.train { update = function(x)
      local loss = ((model(x) - 1) ^ 2):mean()
      loss:backward()
      opt:step()
      return loss
    end, data = data, steps = o.steps, log_every = o.steps < 100000 and 1 or 0, communicator = comm, optimizer = opt,
      checkpoint = { every = o.every, keep = 3, state = { model, opt, data } } }
    local all = {}
    for _, t in ipairs(model:state()) do all["model." .. t.name] = t.tensor end
    for _, t in ipairs(opt:state()) do all["optimizer." .. t.name] = t.tensor end
    rille.data.save_tensors("state.safetensors", all)
  end)
  box:get("state.safetensors", args.out .. "/state-" .. index - 1)
  if index == 1 then box:get("checkpoints/latest", args.out .. "/latest") end
end)
"""
open(root + "/train.lua", "w").write(SCRIPT)


class Training:
    """A run of the script, in a home of its own."""

    def __init__(self, name, count, store="runs", **options):
        self.home = Home(rille, f"rille-shares-{name}-", AWS_ENDPOINT_URL_S3=moto.endpoint, AWS_REGION=moto.region,
                         RILLE_THREADS="1", **moto.environment())
        self.out, self.count = f"{root}/{name}", count
        words = dict(count=count, store=f"s3://{moto.bucket}/{store}/", out=self.out, port=free_ports(1), **options)
        self.process = self.home.start("run", root + "/train.lua", *[f"--{k}={v}" for k, v in words.items()])
        atexit.register(self.end)  # whatever becomes of the test

    def ended(self):
        """(exit code, output); nothing stays rented."""
        self.process.wait(timeout=250)
        if self.process.returncode < 0:
            self.rille("cancel", "last")
        left = self.home.instances()
        said = self.home.text()
        check("nothing stays rented", not left, (left, said))
        return self.process.returncode, said

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.rille("cancel", "last")

    def rille(self, *words):
        out = subprocess.run([rille, *words], capture_output=True, text=True, timeout=100, env=self.home.env,
                             cwd=root)
        return out.returncode, out.stdout + out.stderr

    def states(self, store="runs"):
        text = self.rille("checkpoint", "verify", f"s3://{moto.bucket}/{store}/train/", "--json")[1]
        rows = json.loads(text)
        return [(row["step"], row["state"]) for row in rows] if isinstance(rows, list) else [(-1, rows)]

    def tensors(self):
        return [open(f"{self.out}/state-{rank}", "rb").read() for rank in range(self.count)]

    def machine_of(self, rank):
        row = self.home.rows(f"SELECT machine_id FROM leases WHERE name='gang-{rank + 1}'")
        return f"{self.home.home}/instances/{row[0][0]}"

    def remove(self):
        shutil.rmtree(self.home.home, ignore_errors=True)


def latest(store="runs"):
    """The checkpoints that latest.json names, the newest first."""
    try:
        body = objects.get_object(Bucket=moto.bucket, Key=f"{store}/train/latest.json")["Body"].read()
    except objects.exceptions.NoSuchKey:
        return []
    return json.loads(body)["checkpoints"]


# A training that saves faster than the runner fetches, and keeps one: the machine holds what is fetched.
FAST = """
local rille = require "rille"
local box = rille.rent("b", { gpu = "cpu", provider = "local", ttl = "1h" })
box:call("train", { checkpoint = rille.home }, function()
  for step = 1, 25 do
    local layer = rille.nn.linear(2048, 2048, { seed = step })
    rille.checkpoint.save({ layer }, { directory = "checkpoints", step = step, keep = 1 })
  end
end)
"""
open(root + "/fast.lua", "w").write(FAST)
fast = Home(rille, "rille-fast-")
process = fast.start("run", root + "/fast.lua")
process.wait(timeout=250)
kept = fast.rows("SELECT count(*) FROM events WHERE event='checkpoint_kept'")[0][0]
check("more than the last checkpoint is fetched", process.returncode == 0 and kept > 1, (kept, fast.text()))
shutil.rmtree(fast.home, ignore_errors=True)

four = Training("four", 4)
code, text = four.ended()
check("four ranks train", code == 0, text)
whole = four.tensors()
check("and have one state", len(set(whole)) == 1, [len(t) for t in whole])
check("their checkpoints are whole", four.states() == [(8, "whole"), (4, "whole")], four.states())
check("each is told of once", text.count("checkpoint at step 4") == text.count("checkpoint at step 8") == 1, text)
newest, first = latest()
shares = [sum(f["size_bytes"] - 4096 for f in first["files"] if f"rank-{rank}-of-4" in f["name"]) for rank in range(4)]
check("each sent a share of the same size", max(shares) - min(shares) < 1024 and sum(shares) > 140_000, first)
check("what is frozen was not sent again", any(f.get("at") for f in newest["files"]), newest)
got = sorted(os.listdir(four.out + "/latest"))
check("box:get brings it from the store", got == sorted(f["name"] for f in newest["files"]), (got, newest))
code, text = four.rille("checkpoint", "convert", f"s3://{moto.bucket}/runs/train/", "one.safetensors")
check("converted, it is one file of whole tensors", code == 0 and all(
    name in open(root + "/one.safetensors", "rb").read(4096) for name in (b'"1.weight"', b'"2.weight"')), text)
for world in (1, 2, 3, 8):
    run = Training(f"by-{world}", world)
    code, text = run.ended()
    check(f"loaded by {world}: the same tensors at each rank", code == 0 and set(run.tensors()) == set(whole)
          and "step     1" not in text, text)
    run.remove()
run = Training("on", 3, steps=12)
code, text = run.ended()
check("three ranks go on from there", code == 0 and "step     8" not in text and "step     9" in text
      and run.states()[0] == (12, "whole"), (text, run.states()))
run.remove()


def worker_of(folder):
    """The process that works on a call of this instance."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if b"worker" in words and folder.encode() in words:
            return int(pid)
    return None


# Killed at any moment: what latest.json names is whole, and another number of ranks goes on from there.
chance = random.Random(5)
victims = ("machine 0", "worker 1", "runner", "machine 2", "worker 0", "machine 1", "runner")
for attempt, victim in enumerate(victims if "--all" in sys.argv else victims[:1]):
    before = latest("killed")
    wanted = (before[0]["step"] if before else 0) + chance.randint(2, 9)
    run = Training(f"kill-{attempt}", 3 - attempt % 2, "killed", every=1, steps=100_000)
    until = time.monotonic() + 300
    while time.monotonic() < until and run.process.poll() is None:
        now = latest("killed")
        if now and now[0]["step"] >= wanted:
            break
        time.sleep(0.001 * chance.randint(0, 30))
    what, _, rank = victim.partition(" ")
    if what == "runner":
        run.process.send_signal(signal.SIGKILL)
    elif what == "machine":
        run.home.take(run.machine_of(int(rank)))
    else:
        os.kill(worker_of(run.machine_of(int(rank))), signal.SIGKILL)
    code, text = run.ended()
    found = run.states("killed")
    check(f"{victim} is lost: every checkpoint is whole", code != 0 and found[0][0] >= wanted
          and all(state == "whole" for _, state in found), (code, found, wanted, text))
    saved = [int(step) for step in re.findall(r"^checkpoint at step (\d+)", text, re.M)]
    if before and saved:
        check(f"and it had gone on from one before ({attempt})", saved[0] > before[0]["step"], (saved, before))
    run.remove()
last = latest("killed")[0]["step"]
run = Training("after", 2, "killed", every=1, steps=last + 3)
code, text = run.ended()
check("another number of ranks goes on", code == 0 and f"step {last + 1:5}" in text and f"step {last:5} " not in text
      and run.states("killed")[0] == (last + 3, "whole"), (code, text))
run.remove()
four.remove()
shutil.rmtree(root, ignore_errors=True)
finish()
