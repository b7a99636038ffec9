#!/usr/bin/env python3
"""Checkpoints write, send and fetch only the tensors that changed: in a folder, in a store, and from a machine to the
run's home. usage: checkpoint_changes_test.py RILLE"""
import glob, json, os, random, shutil, subprocess, sys, tempfile, time

from tap import check, finish

contract = os.path.abspath(os.path.dirname(__file__) + "/../contract")
sys.path[:0] = [contract + "/stores", contract + "/fakes"]
import fake_store  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-changes-")


class Counting(fake_store.S3):
    """Notes the sizes of files that are put."""
    put = []

    def answer(self, request):
        if request.method == "PUT" and request.path.endswith(".safetensors"):
            self.put.append((request.path.rsplit("/", 1)[1], len(request.body)))
        return super().answer(request)


bucket = Counting()
env = dict(os.environ, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1", RILLE_DEVICE="cpu",
           AWS_REGION=bucket.region, AWS_ENDPOINT_URL_S3=bucket.endpoint, **bucket.environment())

# The first layer has 64 KB and is not trained, the second one is: 33 KB.
MODEL = """
local rille = require "rille"
local nn = rille.nn
local model = nn.sequential { nn.linear(128, 128, { seed = 1, bias = false }), nn.linear(128, 64, { seed = 2 }) }
local trained = {}
for _, p in ipairs(model:parameters()) do if p.name:find "^2" then trained[#trained + 1] = p end end
local opt = rille.optim.adamw(trained, { lr = 1e-2 })
local data = { at = 0, next = function(self)
    self.at = self.at + 1
    return rille.device():full { 4, 128, value = self.at / 100 }
  end, state = function(self) return { at = self.at } end, load_state = function(self, s) self.at = s.at end }
local function update(x)
  local loss = ((model(x) - 1) ^ 2):mean()
  loss:backward()
  opt:step()
  return loss
end
"""
open(root + "/train.lua", "w").write(MODEL + """
local args = rille.args { steps = 8, dir = "", store = "", every = 2 }
local done = rille.train { data = data, steps = args.steps, log_every = 1, update = update, workload = "tiny",
  checkpoint = { every = args.every, keep = 2, state = { model, opt, data }, directory = args.dir,
    store = args.store ~= "" and args.store or nil } }
print(("loss %.9f"):format(done.loss))
""")


def run(*words, home="home"):
    out = subprocess.run([rille, *words], capture_output=True, text=True, timeout=200, cwd=root,
                         env=dict(env, RILLE_HOME=f"{root}/{home}"))
    return out.returncode, out.stdout + out.stderr


def train(steps, folder, store=""):
    return run("run", "train.lua", f"--steps={steps}", f"--dir={root}/{folder}", f"--store={store}")


def files(folder):
    return {name: os.stat(f"{folder}/{name}") for name in os.listdir(folder) if name.endswith(".safetensors")}


def states(place):
    code, text = run("checkpoint", "verify", place, "--json")
    return [(row["step"], row["state"]) for row in json.loads(text)]


def loss(text):
    return [line for line in text.splitlines() if line.startswith("loss ")]


code, text = train(8, "a")
six, eight = files(root + "/a/step-00000006"), files(root + "/a/step-00000008")
kept = "model.step-00000002.safetensors"
check("a frozen layer is not written again", code == 0 and six[kept].st_ino == eight[kept].st_ino
      and six["model.safetensors"].st_ino != eight["model.safetensors"].st_ino
      and eight["model.safetensors"].st_size < 60_000 < eight[kept].st_size, (text, eight))
check("checkpoints that others are based on may go", sorted(os.listdir(root + "/a")) ==
      ["latest", "step-00000006", "step-00000008"] and states("a") == [(8, "whole"), (6, "whole")], os.listdir(root))
code, gone_on = train(12, "a")
code_b, undisturbed = train(12, "b")
check("it goes on as an undisturbed training", code == code_b == 0 and "step     8" not in gone_on
      and loss(gone_on) == loss(undisturbed) != [], (gone_on, undisturbed))

code, text = train(8, "c", "s3://bucket/runs/")
large = [name for name, size in bucket.put if size > 90_000]
check("it is sent to a store once", code == 0 and large == ["model.safetensors"], bucket.put)
latest = json.loads(bucket.objects["runs/tiny/latest.json"].data)
at = {f["at"] for c in latest["checkpoints"] for f in c["files"] if "at" in f}
check("latest.json says where it is", len(at) == 1 and "runs/tiny/" + at.copy().pop() in bucket.objects, latest)
check("and what it names is whole", states("s3://bucket/runs/tiny/")[0] == (8, "whole"), latest)
code, text = train(12, "d", "s3://bucket/runs/")
check("another folder goes on from there", code == 0 and "step     8" not in text and loss(text) == loss(undisturbed),
      text)
check("where it is not sent again", [n for n, size in bucket.put if size > 90_000] == large, bucket.put)

for to in ("e", "s3://bucket/copy/"):
    code, text = run("checkpoint", "cp", "s3://bucket/runs/tiny/", to)
    check(f"a copy to {to} stands by itself", code == 0 and states(to) == [(12, "whole")], text)
bodies = []
for source in ("d", "e", "s3://bucket/runs/tiny/", "s3://bucket/copy/"):
    code, text = run("checkpoint", "convert", source, "one.safetensors")
    bodies.append(code == 0 and open(root + "/one.safetensors", "rb").read())
check("all convert to the same", bodies[0] and all(body == bodies[0] for body in bodies), len(set(bodies)))
check("with the whole model", all(name in bodies[0][:4000] for name in (b'"1.weight"', b'"2.weight"', b'"2.bias"')),
      bodies[0][:400])

# Killed at any moment: every checkpoint in the folder is whole, and the training goes on from the newest.
chance = random.Random(3)
for attempt in range(10):
    link = root + "/k/latest"
    wanted = (int(os.readlink(link)[5:]) if os.path.lexists(link) else 0) + chance.randint(1, 12)
    training = subprocess.Popen([rille, "run", "train.lua", "--steps=100000", f"--dir={root}/k", "--every=1"], cwd=root,
                                env=dict(env, RILLE_HOME=f"{root}/killed-{attempt}"), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while time.monotonic() < until and training.poll() is None and not (
            os.path.lexists(link) and int(os.readlink(link)[5:]) >= wanted):
        time.sleep(0.001 * chance.randint(0, 5))
    training.kill()
    code = training.wait()
    found = states("k")
    check(f"killed ({attempt}), every checkpoint is whole", code == -9 and found[0][0] >= wanted
          and all(state == "whole" for _, state in found), (code, wanted, found))

open(root + "/kept.lua", "w").write("""
local rille = require "rille"
local go = rille.args { go = "" }.go
local box = rille.rent("box", { provider = "local" })
box:call("train", { checkpoint = rille.home, args = { go = go } }, function(args)
""" + MODEL.replace("local rille = require \"rille\"\n", "") + """
  for step = 1, 2 do
    update(data:next())
    rille.checkpoint.save({ model, opt }, { directory = "checkpoints", step = step, keep = 1 })
    while step == 1 and not io.open(args.go) do os.execute("sleep 0.02") end
  end
end)
""")
runner = subprocess.Popen([rille, "run", root + "/kept.lua", "--go=" + root + "/go"], cwd=root, text=True,
                          env=dict(env, RILLE_HOME=root + "/kept"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def copies(step):
    return glob.glob(f"{root}/kept/runs/*/checkpoints/train-*/step-{step:08}")


until = time.monotonic() + 100
while not copies(1) and runner.poll() is None and time.monotonic() < until:
    time.sleep(0.02)
open(root + "/go", "w").close()
text = runner.communicate(timeout=100)[0]
found = [files(folder) for step in (1, 2) for folder in copies(step)]
check("what the run's home has is not fetched again", runner.returncode == 0 and len(found) == 2
      and found[1]["model.step-00000001.safetensors"].st_ino == found[0]["model.safetensors"].st_ino, (text, found))
check("and both copies are whole", len(found) == 2 and states(os.path.dirname(copies(2)[0])) ==
      [(2, "whole"), (1, "whole")], text)
bucket.close()
shutil.rmtree(root)
finish()
