#!/usr/bin/env python3
"""Ranks that see one folder write each checkpoint together; any number of ranks loads it; and whatever is killed,
`latest` is whole. usage: shares_test.py RILLE"""
import json, os, random, signal, subprocess, sys, time

from ranks import Ranks
from tap import check, finish

contract = os.path.abspath(os.path.dirname(__file__) + "/../contract")
sys.path[:0] = [contract + "/stores", contract + "/fakes"]
import fake_store  # noqa: E402

processes = Ranks(sys.argv[1], "shares")
root, start, ended = processes.root, processes.start, processes.ended
processes.HEAD = Ranks.HEAD.replace('first = ""',
                                    'first = "", steps = 8, folder = "shared", every = 4, store = ""')

# Layer 1 is frozen: 64 KB of the model's 97. The optimizer has moments of layer 2 and of its bias, and single numbers.
TRAIN = """
local nn = rille.nn
local model = nn.sequential { nn.linear(128, 128, { seed = 1, bias = false }), nn.linear(128, 64, { seed = 2 }) }
model:to(dev)
local trained = {}
for _, p in ipairs(model:parameters()) do if p.name:find "^2" then trained[#trained + 1] = p end end
local opt = rille.optim.adamw(trained, { lr = 1e-2 })
local source = rille.device("cpu")
source:seed(11)
local data = rille.data.arrays({ source:randn { 48, 128 } }, { batch = 24 / world, seed = 5, split = 0 })
local result = rille.train { update = function(x)
  local loss = ((model(x) - 1) ^ 2):mean()
  loss:backward()
  opt:step()
  return loss
end, data = data, steps = args.steps, log_every = args.steps < 1000 and 1 or 0, communicator = comm,
  optimizer = opt, checkpoint = { every = args.every, keep = 3, state = { model, opt, data }, directory = args.folder,
  store = args.store ~= "" and args.store or nil } }
local all = {}
for _, t in ipairs(model:state()) do all["model." .. t.name] = t.tensor end
for _, t in ipairs(opt:state()) do all["optimizer." .. t.name] = t.tensor end
rille.data.save_tensors(("%s/state-%d.safetensors"):format(args.first, rank), all)
"""


def rille(*words):
    out = subprocess.run([processes.rille, *words], capture_output=True, text=True, timeout=100, cwd=root,
                         env=dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root, NO_COLOR="1"))
    return out.returncode, out.stdout + out.stderr


def states(place):
    code, text = rille("checkpoint", "verify", place, "--json")
    rows = json.loads(text)
    return [(row["step"], row["state"]) for row in rows] if isinstance(rows, list) else rows


def train(name, world, **options):
    os.makedirs(f"{root}/{name}")
    return ended(start(name, TRAIN, world, first=f"{root}/{name}", **options))


def tensors(name, world):
    """The bytes of the tensors at each rank."""
    return [open(f"{root}/{name}/state-{rank}.safetensors", "rb").read() for rank in range(world)]


four = train("four", 4)
check("four ranks train", all(r[0] == 0 for r in four), four)
whole = tensors("four", 4)
check("and have one state", all(t == whole[0] for t in whole), [len(t) for t in whole])
folder = root + "/shared/step-00000004"
files = {name: os.path.getsize(f"{folder}/{name}") for name in os.listdir(folder)}
shares = [sum(size - 4096 for name, size in files.items() if f"rank-{rank}-of-4" in name) for rank in range(4)]
check("each wrote a share of the same size", max(shares) - min(shares) < 1024 and sum(shares) > 160_000, files)
manifest = json.load(open(folder + "/manifest.json"))
check("the manifest names them all, and nothing else is there", sorted(files) ==
      sorted([f["name"] for f in manifest["files"]] + ["manifest.json"]), files)
check("the checkpoints are whole", states("shared") == [(8, "whole"), (4, "whole")]
      and sorted(os.listdir(root + "/shared")) == ["latest", "step-00000004", "step-00000008"], states("shared"))
kept = {name: os.stat(f"{root}/shared/step-00000008/{name}").st_ino
        for name in os.listdir(root + "/shared/step-00000008") if ".step-00000004" in name}
check("what is frozen was not written again", kept and all(
    os.stat(f"{folder}/{name.replace('.step-00000004', '')}").st_ino == inode for name, inode in kept.items()), kept)

for world in (1, 2, 3, 8):
    results = train(f"by-{world}", world)
    check(f"loaded by {world}: the same tensors at each rank", all(r[0] == 0 for r in results) and all(
        t == whole[0] for t in tensors(f"by-{world}", world)) and "step     1" not in results[0][1], results)
code, text = rille("checkpoint", "convert", "shared", "one.safetensors")
check("converted, they are whole tensors", code == 0 and all(
    name in open(root + "/one.safetensors", "rb").read(4096) for name in (b'"1.weight"', b'"2.weight"')), text)
alone = train("alone", 1, folder="alone")
code, text = rille("checkpoint", "convert", "alone", "alone.safetensors")
check("with the layout of one that a single process wrote", code == 0 and
      open(root + "/one.safetensors", "rb").read(4096) == open(root + "/alone.safetensors", "rb").read(4096), text)

for world, steps in ((2, 12), (3, 16), (1, 20), (4, 24)):
    results = train(f"on-{world}", world, steps=steps)
    check(f"{world} ranks go on from there", all(r[0] == 0 for r in results) and states("shared")[0] ==
          (steps, "whole") and f"step {steps - 4:5}" not in results[0][1] and f"step {steps:5}" in results[0][1],
          (results, states("shared")))

results = ended(start("other-model", TRAIN.replace("128, 128", "128, 96").replace("128, 64", "96, 64"), 2, first=root))
check("a model of another size is refused, with both sizes", all(
    r[0] == 1 and "'1.weight' is [128, 128] in the state and [96, 128] in the model" in r[2] for r in results), results)
share = sorted(n for n in os.listdir(root + "/shared/latest") if "rank-3-of-4" in n)[-1]
with open(f"{root}/shared/latest/{share}", "r+b") as file:
    file.seek(-1, os.SEEK_END)
    last = file.read(1)[0]
    file.seek(-1, os.SEEK_END)
    file.write(bytes([last ^ 1]))
results = train("damaged", 2, steps=24)
check("a damaged share is found, and the checkpoint before is loaded", all(r[0] == 0 for r in results)
      and f"checkpoint skipped: checkpoint 'shared/step-00000024' is damaged: file '{share}'" in results[0][1]
      and "going back to step 20" in results[0][1] and states("shared")[0] == (24, "whole"), results)

apart = train("apart", 2, only={0: {"folder": "own-0"}, 1: {"folder": "own-1"}})
check("where they see different folders, rank 0 writes alone", all(r[0] == 0 for r in apart)
      and states("own-0") == [(8, "whole"), (4, "whole")] and not os.path.exists(root + "/own-1")
      and "model.safetensors" in os.listdir(root + "/own-0/latest"), (apart, os.listdir(root)))

# Killed at any moment: what `latest` names is whole, and another number of ranks goes on from there.
chance = random.Random(5)
for attempt in range(8):
    os.makedirs(f"{root}/kill-{attempt}")
    ranks = start(f"kill-{attempt}", TRAIN, 3, first=f"{root}/kill-{attempt}", folder="killed", every=1, steps=100_000)
    before = states("killed") if os.path.exists(root + "/killed/latest") else []
    first = before[0][0] if before else 0
    until, wanted = time.monotonic() + 60, first + chance.randint(1, 9)
    while time.monotonic() < until and all(p.poll() is None for p in ranks) and not (
            os.path.exists(root + "/killed/latest") and int(os.readlink(root + "/killed/latest")[5:]) >= wanted):
        time.sleep(0.001 * chance.randint(0, 5))
    for rank in ((0,), (1,), (2,), (0, 1, 2))[attempt % 4]:
        ranks[rank].send_signal(signal.SIGKILL)
    results = ended(ranks, 60)
    found = states("killed")
    check(f"killed ({attempt}), every checkpoint is whole", found[0][0] >= wanted
          and all(state == "whole" for _, state in found) and os.path.exists(root + "/killed/latest/manifest.json"),
          (found, wanted, results))
    check(f"and no rank goes on alone ({attempt})", all(r[0] not in (None, 0) for r in results), results)
results = train("after", 2, folder="killed", steps=states("killed")[0][0] + 3)
check("another number of ranks goes on, and clears away", all(r[0] == 0 for r in results)
      and not [n for n in os.listdir(root + "/killed") if n.startswith(".tmp")],
      (results, os.listdir(root + "/killed")))

bucket = fake_store.S3()
os.environ.update(AWS_REGION=bucket.region, AWS_ENDPOINT_URL_S3=bucket.endpoint, **bucket.environment())
stored = train("stored", 4, folder="stored", store="s3://bucket/runs/")
check("a checkpoint of several ranks goes to a store", all(r[0] == 0 for r in stored)
      and "runs/train/latest.json" in bucket.objects, stored)
results = train("fetched", 3, folder="fetched", store="s3://bucket/runs/")
check("and comes back from there", all(r[0] == 0 for r in results) and "step     1" not in results[0][1]
      and all(t == tensors("stored", 4)[0] for t in tensors("fetched", 3)), results)
bucket.close()
processes.remove()
finish()
