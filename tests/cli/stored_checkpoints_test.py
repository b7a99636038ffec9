#!/usr/bin/env python3
"""rille.train sends its checkpoints to a store, and goes on from there in a folder that has none. The store is a fake
of S3 that verifies every signature. usage: stored_checkpoints_test.py RILLE"""
import json, os, re, shutil, subprocess, sys, tempfile, threading

from tap import check, finish

contract = os.path.abspath(os.path.dirname(__file__) + "/../contract")
sys.path[:0] = [contract + "/stores", contract + "/fakes"]
import fake_store  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-stored-")
bucket = fake_store.S3()
env = dict(os.environ, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1", RILLE_DEVICE="cpu",
           AWS_REGION=bucket.region, AWS_ENDPOINT_URL_S3=bucket.endpoint, **bucket.environment())

SCRIPT = """
local rille = require "rille"
local args = rille.args { steps = 6, dir = "", store = "s3://bucket/runs/" }
local dev = rille.device()
local model = rille.nn.linear(3, 1, { seed = 1 })
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
local data = { at = 0, next = function(self) self.at = self.at + 1 return dev:full { 4, 3, value = self.at / 10 } end,
  state = function(self) return { at = self.at } end, load_state = function(self, s) self.at = s.at end }
local done = rille.train { data = data, steps = args.steps, log_every = 1, workload = "tiny", update = function(x)
  local loss = ((model(x) - 1) ^ 2):mean()
  loss:backward()
  opt:step()
  return loss
end, checkpoint = { every = 2, keep = 2, state = { model, opt, data }, directory = args.dir, store = args.store } }
print(("loss %.9f"):format(done.loss))
"""
open(root + "/train.lua", "w").write(SCRIPT)


def train(home, steps, folder, store="s3://bucket/runs/", limits=()):
    out = subprocess.run([rille, "run", *limits, root + "/train.lua", f"--steps={steps}", f"--dir={root}/{folder}",
                          f"--store={store}"], capture_output=True, text=True, timeout=200,
                         env=dict(env, RILLE_HOME=f"{root}/{home}"))
    return out.returncode, out.stdout + out.stderr


def latest():
    return json.loads(bucket.objects["runs/tiny/latest.json"].data)


def loss(text):
    return [line for line in text.splitlines() if line.startswith("loss ")]


code, text = train("h1", 6, "a")
check("a training with a store ends", code == 0, text)
names = [c["step"] for c in latest()["checkpoints"]]
# That of step 4 is not sent if the training ends while that of step 2 is on its way.
check("its newest checkpoints are in the store", names in ([6, 4], [6, 2]), names)
there = {c["folder"] + f["name"]: f["size_bytes"] for c in latest()["checkpoints"] for f in c["files"]}
stored = {k[len("runs/tiny/"):]: len(o.data) for k, o in bucket.objects.items() if not k.endswith("latest.json")}
check("whole, and nothing else", there == stored, (there, stored))



def look(verb, place):
    out = subprocess.run([rille, "checkpoint", verb, place, "--json"], capture_output=True, text=True, timeout=100,
                         env=dict(env, RILLE_HOME=root + "/h0"))
    rows = json.loads(out.stdout)
    return out.returncode, [(r["step"], r["state"]) for r in rows] if isinstance(rows, list) else rows["error"]


newest = latest()["checkpoints"][0]
places = {root + "/a": 4, "s3://bucket/runs/tiny/": names[1]}  # and the step of the checkpoint before the newest
for place, before in places.items():
    check(f"checkpoint ls {place}", look("ls", place) == (0, [(6, "complete"), (before, "complete")]),
          look("ls", place))
    check(f"checkpoint verify {place}", look("verify", place) == (0, [(6, "whole"), (before, "whole")]),
          look("verify", place))
for place in root + "/a/latest", "s3://bucket/runs/tiny/" + newest["folder"]:
    check(f"checkpoint verify {place}", look("verify", place) == (0, [(6, "whole")]), look("verify", place))
shutil.copytree(root + "/a/latest", root + "/model")  # as box:get("checkpoints/latest", "model") brings it
check("a fetched checkpoint has any name", look("ls", root + "/model") == (0, [(6, "complete")]) and
      look("verify", root + "/model") == (0, [(6, "whole")]), look("ls", root + "/model"))
weights, name = bucket.objects["runs/tiny/" + newest["folder"] + newest["files"][0]["name"]], newest["files"][0]["name"]
good, local = weights.data, f"{root}/a/step-00000006/{name}"
weights.data = bytes([good[0] ^ 1]) + good[1:]
with open(local, "r+b") as file:
    file.write(weights.data)
for place, before in places.items():
    check(f"a damaged one is found in {place}", look("verify", place) == (1, [(6, "damaged"), (before, "whole")])
          and look("ls", place)[0] == 0, look("verify", place))
os.truncate(local, 5)
check("ls finds one of another size", look("ls", root + "/a") == (0, [(6, "damaged"), (4, "complete")]),
      look("ls", root + "/a"))
weights.data = good
code, error = look("ls", "s3://bucket/runs/")
check("an address without checkpoints is an error that says what to name", code == 1 and error["kind"] == "state"
      and "latest.json" in error["hint"], error)

code, text = train("h2", 10, "b")
check("another folder goes on from the store", code == 0 and "step     7" in text and "step     6" not in text, text)
code, undisturbed = train("h3", 10, "c", store="s3://bucket/undisturbed/")
check("with the losses of an undisturbed training", code == 0 and loss(text) == loss(undisturbed) != [],
      (text, undisturbed))

newest, before = latest()["checkpoints"]
key = "runs/tiny/" + newest["folder"] + newest["files"][0]["name"]
bucket.objects[key].data = b"x" + bucket.objects[key].data[1:]
code, text = train("h4", 10, "d")
check("a damaged checkpoint is passed over for the one before", code == 0 and "checkpoint skipped" in text
      and f"before this one is step {before['step']}: s3://bucket/runs/tiny/" in text and "step     9" in text, text)

data = bucket.objects["runs/tiny/latest.json"].data
bucket.objects["runs/tiny/latest.json"].data = re.sub(rb'("step": *)10', rb"\g<1>11", data, count=1)
check("the test edits latest.json", bucket.objects["runs/tiny/latest.json"].data != data, data)
code, text = train("h5", 12, "e")
check("an edited latest.json is an integrity error", code != 0 and "integrity" in text and "latest.json" in text, text)
bucket.objects["runs/tiny/latest.json"].data = data

bucket.fault("throttle", "put", retry_after=3600)  # longer than a call waits
code, text = train("h7", 2, "g", store="s3://bucket/passing/")
check("a failure of the last upload that passes is only a line", code == 0 and "was not sent" in text
      and "passing/tiny/latest.json" in bucket.objects, text)
bucket.fault("throttle", "put", times=1000, retry_after=3600)
code, text = train("h8", 2, "h", store="s3://bucket/lasting/")
check("one that lasts ends the training, after some tries", code != 0 and text.count("was not sent") == 4
      and "quota" in text and not any(key.startswith("lasting/") for key in bucket.objects), text)
bucket.faults.clear()

allowed = ["--grant", f"read={root}", "--grant", f"write={root}"]
code, text = train("h6", 12, "f", limits=allowed)
check("it needs the grants of a store", code != 0 and "denied" in text, text)

bucket.close()


class Holding(fake_store.S3):
    """Holds the upload of weights until a script puts "go", and has "begun" by then."""
    go = threading.Event()

    def answer(self, request):
        if request.method == "PUT" and request.path.endswith(".safetensors"):
            self.add("begun")
            self.go.wait(100)
        if request.path.endswith("/go"):
            self.go.set()
        return super().answer(request)


bucket = Holding()
env["AWS_ENDPOINT_URL_S3"] = bucket.endpoint
ENDS = """
local rille = require "rille"
local args = rille.args { dir = "" }
local store = rille.store "s3://bucket/"
local model = rille.nn.linear(3, 1, { seed = 1 })
local x = rille.device():full { 4, 3, value = 1 }
local ok, why = pcall(rille.scope, "train", function()
  rille.train { data = { next = function() return x end }, steps = 1e6, log_every = 0, update = function(batch)
    if store:exists("begun") then error("enough") end
    return model(batch):mean()
  end, checkpoint = { every = 1, keep = 1000, state = { model }, directory = args.dir, store = "s3://bucket/ended/" } }
end)
print(ok, why)
store:put("go", "x")
for _ = 1, 50 do store:list() end
"""
open(root + "/ends.lua", "w").write(ENDS)
out = subprocess.run([rille, "run", root + "/ends.lua", f"--dir={root}/i"], capture_output=True, text=True,
                     timeout=200, env=dict(env, RILLE_HOME=root + "/h9"))
check("a training that fails ends its upload, though its script goes on", out.returncode == 0
      and "enough" in out.stdout and "go" in bucket.objects
      and not any(key.endswith("latest.json") for key in bucket.objects),
      (out.stdout, out.stderr, sorted(bucket.objects)))
bucket.close()
shutil.rmtree(root)
finish()
