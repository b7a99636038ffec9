#!/usr/bin/env python3
"""A GPU that this build cannot use is refused before anything is paid: by `rent` and by `plan`, with the one command
that mends it. The cloud is a web service here (the provider `remote`); the stand-in plug-in plays builds with and
without images. usage: gpu_rent_test.py RILLE PLUGIN"""
import json, os, shutil, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tap import check, finish

rille, plugin = (os.path.abspath(word) for word in sys.argv[1:3])
root = tempfile.mkdtemp(prefix="rille-gpu-rent-")
GPUS = {"H100": 80, "A100": 80, "L4": 24, "T4": 16, "V100": 16, "MI300X": 192}
calls, machines = [], {}


class Cloud(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        name = self.path.rsplit("/", 1)[-1]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        calls.append(name)
        answer = getattr(self, name)(asked)
        body = json.dumps(answer or {}).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def offers(self, _):
        return {"offers": [{"provider": "remote", "id": gpu.lower(), "gpu": gpu, "gpu_count": 1, "vcpus": 8,
                            "gpu_memory_bytes": size * 10**9, "memory_bytes": 64 << 30, "region": "r",
                            "price_micros_per_hour": 2_000_000}
                           for gpu, size in GPUS.items()]}

    def create(self, asked):
        id = "m-" + asked["token"]
        machines[id] = {"id": id, "state": "live", "tag": asked["tag"], "created_wall_us": int(time.time() * 1e6),
                        "expires_wall_us": asked["expires_wall_us"]}
        return machines[id]

    def describe(self, asked):
        return machines.get(asked["id"])

    def list(self, asked):
        return {"machines": [m for m in machines.values() if m["tag"].startswith(asked["tag"])]}

    def terminate(self, asked):
        machines.pop(asked["id"], None)
        return {}

    def bill(self, _):
        return {"bills": []}


server = ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(root + "/providers.json", "w") as file:
    json.dump({"remote": {"url": f"http://127.0.0.1:{server.server_port}/v1",
                          "traits": {"token_lifetime_ms": 3600000, "create_timeout_ms": 2000, "dead_man": "provider"}}},
              file)
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1",
           RILLE_PROVIDERS=root + "/providers.json", RILLE_CUDA_PLUGIN=plugin, no_proxy="127.0.0.1")
for name in ("RILLE_DEVICE", "RILLE_STANDIN_IMAGES"):
    env.pop(name, None)


def run(verb, options, *words, **more):
    """The exit code, all that was said, and the calls that the cloud got."""
    with open(root + "/script.lua", "w") as file:
        file.write(f'local rille = require "rille"\nlocal box = rille.rent("box", {{ ttl = "1h", {options} }})\n'
                   'print("rented", box.gpu)\n')
    before = len(calls)
    r = subprocess.run([rille, verb, *words, root + "/script.lua"], env=dict(env, **more), capture_output=True,
                       text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr, calls[before:]


cloud = 'provider = "remote", '
bare = dict(RILLE_STANDIN_IMAGES="none")
try:
    code, told, asked = run("run", cloud + 'gpu = "H100"')
    check("a build with images rents the GPU", code == 0 and "rented\tH100" in told and "create" in asked, told)
    code, told, asked = run("run", cloud + 'gpu = "H100"', **bare)
    check("a build without images refuses it, and names the GPU", code == 1 and "error (config)" in told and
          "this build of Rille has no kernels for a H100 (sm_90): no images" in told, told)
    check("with the one command that mends it, and the way without", "`./bootstrap cuda 90`" in told and
          "cuda = false" in told, told)
    check("before any call", asked == [], asked)
    code, told, asked = run("run", 'gpu = "H100"', **bare)
    check("where other providers are there, too", code == 1 and "./bootstrap cuda 90" in told and asked == [],
          told + str(asked))
    code, told, asked = run("run", cloud + 'gpu = "H100", cuda = false', **bare)
    check("cuda = false rents it all the same", code == 0 and "rented\tH100" in told and "create" in asked, told)
    code, told, asked = run("run", cloud + 'gpu = "H100", cuda = "no"', **bare)
    check("which is true or false", code == 1 and "expected true or false" in told and asked == [], told)
    code, told, asked = run("run", cloud + 'gpu = "any"', **bare)
    check("any GPU is refused when it is chosen", code == 1 and "error (config)" in told and "./bootstrap cuda" in told
          and "create" not in asked, told + str(asked))
    code, told, asked = run("run", cloud + 'gpu = "H100"', RILLE_CUDA_PLUGIN=root + "/none.so")
    check("so is each where the CUDA part is missing", code == 1 and "cannot compute on a H100" in told and
          "none.so" in told and "./bootstrap build" in told and asked == [], told)
    some = dict(RILLE_STANDIN_IMAGES="80,86")
    for gpu, fits in (("A100", True), ("L4", True), ("H100", False), ("T4", False)):
        code, told, asked = run("run", cloud + f'gpu = "{gpu}"', **some)
        check(f"images for sm_80 and sm_86 {'run on' if fits else 'are nothing for'} a {gpu}",
              (code == 0 and "create" in asked) if fits else (code == 1 and asked == [] and "images for sm_80, sm_86"
                                                              in told), told)
    code, told, asked = run("run", cloud + 'gpu = "V100"')
    check("a GPU that is too old for Rille is refused by any build", code == 1 and "supports only sm_75" in told and
          "choose a newer GPU" in told and asked == [], told)
    code, told, asked = run("run", cloud + 'gpu = "MI300X"', **bare)
    check("one of another maker is the user's business", code == 0 and "rented\tMI300X" in told, told)

    code, told, asked = run("plan", cloud + 'gpu = "H100"')
    check("a plan shows what it would rent", code == 0 and "remote" in told and "create" not in asked, told)
    code, told, asked = run("plan", cloud + 'gpu = "H100"', **bare)
    check("a plan says that the rent would be refused", code == 1 and "error (config)" in told and
          "./bootstrap cuda 90" in told and "create" not in asked, told)
    code, told, asked = run("plan", cloud + 'gpu = "H100"', "--json", **bare)
    seen = json.loads(told[:told.rindex("}") + 1])
    check("as data, too", code == 1 and seen["error"]["kind"] == "config" and
          seen["error"]["code"] == "gpu_unusable" and seen["leases"][0]["refused"]["kind"] == "config", told)
    code, told, asked = run("plan", cloud + 'gpu = "H100", cuda = false', **bare)
    check("but not where cuda = false", code == 0, told)
    check("nothing is left", not machines, machines)
finally:
    server.shutdown()
    shutil.rmtree(root)
finish()
