#!/usr/bin/env python3
"""`rille checkpoint cp` between folders and a store, and `rille checkpoint convert`. The store is a fake of S3 that
verifies every signature. usage: checkpoint_copy_test.py RILLE"""
import json, os, shutil, struct, subprocess, sys, tempfile

from tap import check, finish

contract = os.path.abspath(os.path.dirname(__file__) + "/../contract")
sys.path[:0] = [contract + "/stores", contract + "/fakes"]
import fake_store  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-copies-")
os.makedirs(root + "/scratch")
bucket = fake_store.S3()
env = dict(os.environ, XDG_CONFIG_HOME=root + "/config", RILLE_HOME=root + "/home", NO_COLOR="1", RILLE_THREADS="1",
           RILLE_DEVICE="cpu", TMPDIR=root + "/scratch", AWS_REGION=bucket.region,
           AWS_ENDPOINT_URL_S3=bucket.endpoint, **bucket.environment())

SCRIPT = """
local rille = require "rille"
local args = rille.args { dir = "", steps = 3 }
local model = rille.nn.linear(3, 2, { seed = 1 })
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
for step = 1, args.steps do
  rille.checkpoint.save({ model, opt }, { directory = args.dir, step = 10 * step, keep = 10 })
  model(rille.device():full { 4, 3, value = step }):mean():backward()
  opt:step()
end
"""
open(root + "/save.lua", "w").write(SCRIPT)


def run(*words):
    out = subprocess.run([rille, *words], capture_output=True, text=True, timeout=100, env=env, cwd=root)
    return out.returncode, out.stdout + out.stderr


def told(*words):
    code, text = run("checkpoint", *words, "--json")
    found = json.loads(text)
    return code, found.get("error", found) if isinstance(found, dict) else found


def states(place):
    return [(row["step"], row["state"]) for row in told("verify", place)[1]]


def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (e["dtype"], e["shape"], data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]])
            for name, e in header.items() if name != "__metadata__"}, header.get("__metadata__")


code, text = run("run", root + "/save.lua", "--dir=" + root + "/from")
check("the script saves three checkpoints", code == 0 and states("from") == [(30, "whole"), (20, "whole"),
                                                                            (10, "whole")], text)
there = "s3://bucket/runs/train/"

code, found = told("cp", "from", "to")
check("the newest goes to another folder", code == 0 and found["step"] == 30 and states("to") == [(30, "whole")]
      and os.readlink(root + "/to/latest") == "step-00000030", (code, found))
code, found = told("cp", "from/step-00000010", "to/")
check("one that is named, too; `latest` stays the newest", code == 0 and states("to") == [(30, "whole"), (10, "whole")]
      and os.readlink(root + "/to/latest") == "step-00000030", (code, found))
for name in os.listdir(root + "/from/step-00000030"):
    same = open(f"{root}/from/step-00000030/{name}", "rb").read() == open(f"{root}/to/step-00000030/{name}",
                                                                          "rb").read()
    check(f"{name} is the same", same)

code, found = told("cp", "from/step-00000020", there)
check("to a store", code == 0 and found["place"].startswith(there + "step-00000020-") and states(there) ==
      [(20, "whole")], (code, found))
code, found = told("cp", "from", there)
check("and a newer one, beside it", code == 0 and states(there) == [(30, "whole"), (20, "whole")], (code, found))
keys = set(bucket.objects)
code, text = run("checkpoint", "cp", "from", there)
check("again: it is there", code == 0 and "is there already" in text and set(bucket.objects) == keys, text)
code, found = told("cp", "from/step-00000010", there)
check("an older one does not take its place", code == 1 and found["kind"] == "state" and "step 30" in found["message"]
      and "another address" in found["hint"] and set(bucket.objects) == keys, found)
code, found = told("cp", there, "s3://bucket/other/")
check("from store to store", code == 0 and states("s3://bucket/other/") == [(30, "whole")]
      and os.listdir(root + "/scratch") == [], (code, found))
older = [row["place"] for row in told("ls", there)[1] if row["step"] == 20][0]
code, found = told("cp", older, "back")
check("from a store to a folder", code == 0 and states("back") == [(20, "whole")]
      and sorted(os.listdir(root + "/back")) == ["latest", "step-00000020"], (code, found))
bucket.fault("throttle", "put", times=1000, retry_after=3600)
before = set(bucket.objects)
code, found = told("cp", "from", "s3://bucket/never/")
check("an upload that fails leaves no latest.json", code == 1 and "never/latest.json" not in bucket.objects, found)
bucket.faults.clear()

code, found = told("convert", "from", "hub")
model, metadata = tensors(root + "/hub/model-00001-of-00001.safetensors")
index = json.load(open(root + "/hub/model.safetensors.index.json"))
saved, _ = tensors(root + "/from/step-00000030/model.safetensors")
check("convert makes the hub's layout", code == 0 and found["step"] == 30 and metadata == {"format": "pt"}
      and set(index["weight_map"]) == set(model) and found["tensors"] == len(model), (found, index))
check("the model's tensors keep their names", all(model[name] == saved[name] for name in saved)
      and {n for n in model if n not in saved} and all(n.startswith("optimizer.") for n in model if n not in saved),
      sorted(model))
for source, step in (("to/latest", 30), (there, 30), (older, 20), ("hub", None)):
    code, found = told("convert", source, "one.safetensors")
    if step:
        check(f"convert {source} to a file", code == 0 and found["step"] == step
              and "weight" in tensors(root + "/one.safetensors")[0], found)
    else:
        check("what is no checkpoint is not converted", code == 1 and found["kind"] == "state", found)
shutil.copytree(root + "/from/step-00000010", root + "/fetched")
code, found = told("convert", "fetched", "fetched.safetensors")
check("a checkpoint in a folder of another name", code == 0 and found["step"] == 10, found)
check("nothing else is left", sorted(os.listdir(root + "/scratch")) == [] and not [n for n in os.listdir(root)
                                                                                   if "tmp" in n or "rille-" in n],
      os.listdir(root))

for words, kind, naming in ((("convert", "from", "from"), "invalid", "not empty"),
                            (("convert", "from", "s3://bucket/x"), "invalid", "in a store"),
                            (("cp", "from", "to/step-00000030"), "invalid", "one checkpoint"),
                            (("cp", "from", older), "invalid", "one checkpoint"),
                            (("cp", "nothing", "to"), "io", "nothing"),
                            (("cp", "s3://bucket/none/", "to"), "state", "no checkpoint")):
    code, found = told(*words)
    check(" ".join(words) + " is refused", code == 1 and found["kind"] == kind and naming in found["message"]
          and found.get("hint"), found)

path = root + "/from/step-00000030/model.safetensors"
data = bytearray(open(path, "rb").read())
data[-1] ^= 1
open(path, "wb").write(data)
for verb, to in (("cp", "damaged"), ("convert", "damaged.safetensors"), ("cp", "s3://bucket/damaged/")):
    code, found = told(verb, "from", to)
    check(f"a damaged checkpoint is not the source of {verb} {to}", code == 1 and found["kind"] == "integrity"
          and "step 20" in found["hint"] and not os.path.exists(f"{root}/{to}/step-00000030")
          and not os.path.exists(root + "/damaged.safetensors") and "damaged/latest.json" not in bucket.objects, found)
key = [k for k in bucket.objects if k.startswith("runs/train/step-00000030") and k.endswith("model.safetensors")][0]
bucket.objects[key].data = bytes(data)
for verb, to in (("cp", "damaged"), ("convert", "damaged.safetensors")):
    code, found = told(verb, there, to)
    check(f"nor one in a store, of {verb}", code == 1 and found["kind"] == "integrity"
          and not os.path.exists(root + "/damaged/step-00000030")
          and not os.path.exists(root + "/damaged.safetensors"), found)
bucket.close()
shutil.rmtree(root)
finish()
