#!/usr/bin/env python3
"""Volumes on Kubernetes, in pods that run here (kubelet.py): a second pod finds what the first one wrote, two have a
shared volume at a time, and a volume is not deleted while a pod has it. usage: kube_volume_test.py RILLE"""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "workflows")]
import need
from places import PLACES
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
need.met(PLACES["kubernetes"].missing)
root = tempfile.mkdtemp(prefix="rille-kube-volume-")
RENT = """
local function rent(name, vol)
  return rille.rent(name, { provider = "kubernetes", gpu = "T4", ttl = "30m", gpu_check = false,
                            volumes = { data = vol } })
end
local function write(box, name) box:call(name, { args = name }, function(name)
  local f = assert(io.open("data/" .. name, "w")) f:write(name) f:close()
end) end
local function read(box, name) return box:call("read " .. name, { args = name }, function(name)
  return assert(io.open("data/" .. name)):read("*a")
end) end
"""
ONE = RENT + """
local vol = rille.volume("one", { size = "10GB", provider = "kubernetes", region = "zone-a" })
local box = rent("first", vol)
write(box, "moon")
box:release()
local other = rent("second", vol)
local got = read(other, "moon")
local ok, e = pcall(vol.delete, vol)
other:release()
vol:delete()
return { got = got, code = e.code }
"""
MANY = RENT + """
local vol = rille.volume("many", { size = "10GB", provider = "kubernetes", kind = "nfs", keep = false })
local a, b = rent("a", vol), rent("b", vol)
write(a, "from-a")
write(b, "from-b")
return read(b, "from-a") .. read(a, "from-b")
"""


def run(place, text):
    Path(root, "providers.json").write_text(json.dumps({"kubernetes": place.settings()}))
    Path(root, "flow.lua").write_text('local rille = require "rille"\n' + text)
    env = dict(place.env, RILLE_HOME=root + "/rille", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
               RILLE_THREADS="1", RILLE_PROVIDERS=root + "/providers.json")
    done = subprocess.run([rille, "--json", "run", root + "/flow.lua"], env=env, capture_output=True, text=True,
                          cwd=root, timeout=240)
    return (json.loads(done.stdout) if done.stdout else {}).get("result"), done.stderr


try:
    with PLACES["kubernetes"](root) as place:
        result, told = run(place, ONE)
        check("a second pod finds what the first one wrote, and has the volume to itself",
              result == {"got": "moon", "code": "volume_in_use"}, (result, told))
        result, told = run(place, MANY)
        check("two pods have a shared volume at a time", result == "from-afrom-b", (result, told))
        left = [o for o in place.cluster.ask("state")["objects"] if o["alive"]]
        check("nothing is left of pods and claims", not left and not place.alive(), (left, place.alive()))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
