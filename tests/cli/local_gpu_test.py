#!/usr/bin/env python3
"""The GPUs of this machine, as the provider `local` offers them: "any" takes a free one, two runs do not get the same,
and one is free again when its machine's agent has ended, however. NVML and the driver are stand-ins.
usage: local_gpu_test.py RILLE PLUGIN DRIVER NVML README"""
import json, os, re, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

from tap import check, finish

rille, plugin, driver, nvml, readme = (os.path.abspath(word) for word in sys.argv[1:6])
root = tempfile.mkdtemp(prefix="rille-local-gpu-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1",
           RILLE_THREADS="1", RILLE_CUDA_PLUGIN=plugin, RILLE_CUDA_DRIVER=driver, RILLE_NVML=nvml,
           RILLE_STANDIN_CARDS="2", RILLE_GPU_LOCKS=root + "/locks",
           RILLE_CUDA_PATH=os.path.dirname(driver) + "/toolkit")
for name in ("RILLE_DEVICE", "CUDA_VISIBLE_DEVICES", "RILLE_PROVIDERS"):
    env.pop(name, None)
LOOK = """box:call("look", function()
  local dev = rille.device()
  return { device = dev.name, kind = dev.kind, uuid = os.getenv("CUDA_VISIBLE_DEVICES"),
           sum = (dev:ones { 3 } + 1):sum():item(), count = #rille.devices() - 1 }
end)
"""


def write(source, name="script"):
    Path(root, name + ".lua").write_text('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def run(source, *words, **more):
    r = subprocess.run([rille, "run", write(source), *words], env=dict(env, **more), capture_output=True, text=True,
                       timeout=120, cwd=root)
    return r.returncode, r.stdout + r.stderr


def offers(**more):
    r = subprocess.run([rille, "offers", "--provider", "local", "--json"], env=dict(env, **more), capture_output=True,
                       text=True, timeout=60, cwd=root)
    return [(o.get("gpu", ""), o.get("gpu_count", 0), round(o.get("gpu_memory_bytes", 0) / 1e9))
            for o in json.loads(r.stdout)]


def looked(told):
    return re.findall(r"^(GPU|MIG)(-\w+)\t(\S+)", told, re.M)


show = "local r = " + LOOK + 'print(r.uuid == "" and "none" or r.uuid, r.device, r.sum, r.count)\n'
some = 'local box = rille.rent("box", { gpu = "any", ttl = "1h" })\n'
try:
    check("this machine's processor and the GPUs that NVML shows are offered",
          sorted(offers()) == [("", 0, 0), ("H200", 1, 24), ("H200", 1, 150)], offers())
    check("of a divided GPU its parts", any("MIG" in gpu for gpu, _, _ in offers(RILLE_STANDIN_NVML="mig")),
          offers(RILLE_STANDIN_NVML="mig"))
    check("where RILLE_DEVICE=cpu, the processor alone", offers(RILLE_DEVICE="cpu") == [("", 0, 0)])
    check("and no GPU that this process may not see", len(offers(CUDA_VISIBLE_DEVICES="GPU-c")) == 2 and
          offers(CUDA_VISIBLE_DEVICES="") == [("", 0, 0)], offers(CUDA_VISIBLE_DEVICES="GPU-c"))

    code, told = run(some + show)
    check("any takes one, which its calls see alone", code == 0 and
          re.search(r"^GPU-[ac]\tcuda:0\t6\t1$", told, re.M), told)
    code, told = run(some + show, RILLE_STANDIN_NVML="mig", CUDA_VISIBLE_DEVICES="MIG-b")
    check("a part of a divided GPU, too", code == 0 and "MIG-b\tcuda:0\t6\t1" in told, told)
    code, told = run('local box = rille.rent("box", { gpu = "cpu", ttl = "1h" })\n' + show)
    check("the processor is had by its name, and sees no GPU", code == 0 and "none\tcpu\t6\t0" in told, told)
    code, told = run('local box = rille.rent("box", { ttl = "1h" })\n' + show)
    check("and where no GPU is mentioned", code == 0 and "none\tcpu\t6\t0" in told, told)

    two = 'local box = rille.rent("one", { gpu = "any", ttl = "1h" })\n' + show + \
          'local box = rille.rent("two", { gpu = "any", ttl = "1h" })\n' + show
    code, told = run(two)
    seen = re.findall(r"^(GPU-[ac])\t", told, re.M)
    check("two machines get two GPUs", code == 0 and sorted(seen) == ["GPU-a", "GPU-c"], told)
    third = 'local third, why = rille.try_rent("three", { gpu = "any", provider = "local", ttl = "1h" })\n'
    code, told = run(two + third + 'print("third", third, why.kind)\n')
    check("a third gets none, and not the processor instead", code == 0 and "third\tnil\tcapacity" in told, told)

    # Another process, while this one holds a GPU; it stays in its call until the file is there.
    holds = subprocess.Popen([rille, "run", write(some + show + """
box:call("stay", { args = rille.home }, function(home)
  for _ = 1, 2400 do
    local f = io.open(home .. "/enough") if f then f:close() return end
    rille.sleep(0.05)
  end
end)
""", "holds")], env=env, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    first = ""
    while not first and holds.poll() is None:
        first = (re.match(r"(GPU-[ac])\t", holds.stdout.readline()) or [""])[0].strip()
    code, told = run(some + show)
    second = (re.findall(r"^(GPU-[ac])\t", told, re.M) or [""])[0]
    check("another run gets the other one", code == 0 and first and second and first != second, told + first)
    holds.kill()
    holds.wait()
    time.sleep(0.3)
    code, told = run(two)
    check("a killed runner's machine keeps its GPU, for its agent goes on", code == 1 and "capacity" in told, told)
    for lock in Path(root, "home/instances").glob("i-*/agent.lock"):
        os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)
    time.sleep(1)
    code, told = run(two)
    check("and a killed agent's is free again", code == 0 and sorted(re.findall(r"^(GPU-[ac])\t", told, re.M)) ==
          ["GPU-a", "GPU-c"], told)

    script = re.search(r"```lua\n(.*?)```", Path(readme).read_text(), re.S)[1]
    check("the README's script is found", "rille.rent(" in script and "steps = 40" in script, script)
    Path(root, "readme.lua").write_text(script)
    r = subprocess.run([rille, "run", root + "/readme.lua", "--json"], env=dict(env, RILLE_HOME=root + "/other"),
                       capture_output=True, text=True, timeout=240, cwd=root)
    told = r.stdout + r.stderr
    check("the README's script trains, unchanged", r.returncode == 0, told)
    shown = 'print("trains on", rille.device().name)\n  return rille.train'
    short = script.replace("return rille.train", shown).replace("steps = 40", "steps = 4")
    code, told = run(short, RILLE_HOME=root + "/other")
    check("and on the GPU", code == 0 and "trains on\tcuda:0" in told and
          re.search(r"loss \d\.\d\d, model in", told), told)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
