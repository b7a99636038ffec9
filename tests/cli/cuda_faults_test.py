#!/usr/bin/env python3
"""What is wrong with this machine's CUDA, as a script and the doctor meet it: drivers that do not fit, libraries that
are not there, one by one, and a device that is lost in the middle. The stand-in driver (tests/support/standin) plays
the GPU. usage: cuda_faults_test.py RILLE PLUGIN DRIVER"""
import json, os, re, shutil, subprocess, sys, tempfile
from pathlib import Path

from tap import check, finish

rille, plugin, driver = (os.path.abspath(word) for word in sys.argv[1:4])
toolkit = os.path.dirname(driver) + "/toolkit"
root = tempfile.mkdtemp(prefix="rille-cuda-faults-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1",
           RILLE_THREADS="1", RILLE_CUDA_PLUGIN=plugin, RILLE_CUDA_DRIVER=driver, RILLE_CUDA_PATH=toolkit)
for name in ("RILLE_DEVICE", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"):
    env.pop(name, None)


def run(*words, before=(), **more):
    r = subprocess.run([*before, rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=60,
                       cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(source, name="script", **more):
    Path(root, name + ".lua").write_text('local rille = require "rille"\n' + source)
    return run("run", f"{root}/{name}.lua", **more)


def doctor(**more):
    return {row["what"]: row for row in json.loads(run("doctor", "--json", **more)[1])}


def hide():
    """A prefix of the command under which no other CUDA is found than RILLE_CUDA_PATH's; null where there is none."""
    places = sorted({os.path.realpath(str(p)) for p in Path("/usr/local").glob("cuda*")})
    mounts = "".join(f"mount -t tmpfs none '{p}' && " for p in places) + 'exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", mounts, "sh"]
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=20)
    except OSError:
        return None
    return words if done.returncode == 0 else None


# -- drivers that do not fit
adds = "print(rille.device().name, (rille.device():ones{2} + 1):totable()[2])"
rows = doctor(RILLE_STANDIN_VERSION="11080")
check("the doctor says that the driver is too old, what it costs, and what to do",
      rows["CUDA driver"]["state"] == "missing" and "it supports CUDA 11.8, and Rille needs 12.0" in
      rows["CUDA driver"]["found"] and "R525 or newer" in rows["CUDA driver"]["costs"], rows["CUDA driver"])
code, out, said = script('rille.device "cuda:0"', RILLE_STANDIN_VERSION="11080")
check("a device by name says so, too", code == 1 and "error (device)" in said and "too old" in said and
      "update the driver: R525" in said and "script.lua:2" in said, said)
code, out, said = script(adds, RILLE_STANDIN_VERSION="11080")
check("without a name it is that error, and never the processor", code == 1 and "cpu" not in out and "too old" in said
      and "this machine has a GPU" in said and "RILLE_DEVICE=cpu" in said, out + said)
code, out, said = script(adds, RILLE_STANDIN_VERSION="11080", RILLE_DEVICE="cpu")
check("unless the processor was asked for", code == 0 and "cpu\t2" in out and "too old" not in said, said)

newer = dict(RILLE_STANDIN_VERSION="12040", RILLE_STANDIN_TOOLKIT="13000")
row = doctor(**newer)["CUDA driver"]
check("the doctor says that the driver is older than the kernels' toolkit, with both versions", row["state"] ==
      "missing" and "it supports CUDA 12.4, and they are of CUDA 13.0" in row["found"] and "R580" in row["costs"], row)
code, out, said = script('rille.device "cuda:0"', **newer)
check("and so does a device by name", code == 1 and "older than this build's kernels" in said and "R580" in said, said)
code, out, said = script(adds, **newer)
check("a script that names no device does not compute on the processor, and gets the reason",
      code == 1 and "cpu" not in out and "12.4" in said and "13.0" in said and "RILLE_DEVICE=cpu" in said, out + said)
rows = doctor(RILLE_STANDIN_VERSION="12040")
check("the doctor names each library of a newer CUDA than the driver's", rows["cuBLASLt"]["state"] ==
      rows["NVRTC"]["state"] == "warning" and "it is of CUDA 13, and the driver knows 12.4" in rows["cuBLASLt"]["costs"]
      and "nvidia-cublas-cu12" in rows["cuBLASLt"]["costs"] and rows["cuDNN"]["state"] == "ok", rows)
older = Path(root, "older/lib64")
older.mkdir(parents=True)
shutil.copy(toolkit + "/lib64/libcublasLt.so.13", older / "libcublasLt.so.12")
newest = dict(CUDA_HOME=str(older.parent))
check("where an older one is found, too, that is taken",
      doctor(RILLE_STANDIN_VERSION="12040", **newest)["cuBLASLt"]["state"] == "ok" and
      doctor(**newest)["cuBLASLt"]["found"].startswith(toolkit))
misfit = dict(RILLE_STANDIN_FAIL="cuModuleLoadData:-1:222", RILLE_STANDIN_VERSION="12040", RILLE_DEVICE="cuda:0")
code, out, said = script(adds, **misfit)
check("PTX that is too new: both versions, and the way out", code == 1 and "error (device): cuda:0: loading the" in said
      and "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)" in said and "kernels, of CUDA 12.0, are for sm_75" in said and
      "this is an sm_90 with a driver of CUDA 12.4" in said, said)
code, out, said = script(adds, RILLE_STANDIN_FAIL="cuModuleLoadData:-1:209")
check("cubins of other architectures: which GPU it is, and the way out", code == 1 and "(209)" in said and
      "sm_90" in said and "a newer GPU needs a newer driver" in said, said)
code, out, said = script(adds, RILLE_STANDIN_FAIL="cuInit:-1:803")
check("a driver whose halves do not fit: an error that names it", code == 1 and "cpu" not in out and
      "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in said and "restart the machine" in said, said)

kernel = """
local dev = rille.device "cuda:0"
local source = [[__global__ void scale(int n, float* x) { int i = threadIdx.x; if (i < n) x[i] *= 2; }]]
local x = dev:ones{4}
local k = dev:kernel(source)
local ok, why = pcall(function() k:launch({ grid = 1, block = 4 }, 4, x) return x:totable() end)
"""
# The first image is Rille's own, for ones(); the second is the user's.
code, out, said = script(kernel + "print(why) print((dev:ones{2} + 1):totable()[1])",
                         RILLE_STANDIN_FAIL="cuModuleLoadData:2:200", RILLE_STANDIN_VERSION="12040")
check("NVRTC newer than the driver: both versions, and the way out", code == 0 and "kernel scale" in out and
      "NVRTC of CUDA 13.0 compiled it for sm_90, and the driver knows CUDA 12.4" in out and "RILLE_CUDA_PATH" in out,
      out + said)

code, out, said = script('''local dev = rille.device "cuda:0"
local ok, why = pcall(dev.kernel, dev, [[__global__ void unseen(float* x) { x[0] = 6; }]])
print(ok, why, (dev:ones{2} + 1):totable()[1])''', RILLE_STANDIN_OLD_NVRTC="1")
check("NVRTC older than the GPU: which one, and the way out", code == 0 and "device: kernel unseen: the NVRTC of "
      "CUDA 13.0 cannot compile for sm_90" in out
      and "RILLE_CUDA_PATH" in out and out.rstrip().endswith("\t2"), out + said)

# -- a build whose images do not fit this GPU
def kept_kernels():
    return sorted(p.name for p in Path(root, "home/cache/kernels").glob("*.cubin"))


shutil.rmtree(root + "/home", ignore_errors=True)
for images in ("none", "75,86"):
    shutil.rmtree(root + "/home/cache", ignore_errors=True)
    bare = dict(RILLE_STANDIN_IMAGES=images)
    row = doctor(**bare)["cuda:0"]
    check(f"images for {images}: the doctor says that the first use compiles", row["state"] == "ok" and
          "compiles Rille's kernels" in row["costs"], row)
    code, out, said = script(adds, **bare)
    first = kept_kernels()
    check("a GPU that no image fits compiles the kernels by NVRTC, says so, and keeps them", code == 0 and
          "cuda:0\t2" in out and "compiles Rille's kernels for sm_90" in said and len(first) > 10, out + said)
    code, out, said = script(adds, **bare)
    check("once: the next time they are there", code == 0 and "cuda:0\t2" in out and "compiles" not in said and
          kept_kernels() == first, out + said)
    Path(root, "home/cache/kernels", first[0]).write_text("half of a cubin")
    code, out, said = script(adds, **bare)
    check("a file that is no cubin is made anew", code == 0 and "cuda:0\t2" in out and
          Path(root, "home/cache/kernels", first[0]).read_bytes()[:4] == b"\x7fELF", out + said)
shutil.rmtree(root + "/home/cache")
racing = [subprocess.Popen([rille, "run", root + "/script.lua"], cwd=root, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=dict(env, RILLE_STANDIN_IMAGES="none")) for _ in range(4)]
told = [p.communicate(timeout=60)[0] for p in racing]
check("several processes may do it at the same time", all(p.returncode == 0 for p in racing) and
      all("cuda:0\t2" in text for text in told) and kept_kernels() == first and
      not list(Path(root, "home/cache/kernels").glob("work-*")), told)
shutil.rmtree(root + "/home/cache")
lacks = dict(RILLE_STANDIN_IMAGES="75,86", RILLE_CUDA_WITHOUT="nvrtc")
row = doctor(**lacks)["cuda:0"]
check("without NVRTC the doctor says what is missing, and both ways out", row["state"] == "missing" and
      "no kernels for Stand-in GPU (sm_90): images for sm_75, sm_86" in row["costs"] and "./bootstrap cuda 90" in
      row["costs"] and "nvidia-cuda-nvrtc" in row["costs"], row)
code, out, said = script(adds, **lacks)
check("and a script does not compute on the processor instead", code == 1 and not out and
      "this machine has a GPU" in said and "./bootstrap cuda 90" in said and "RILLE_DEVICE=cpu" in said, out + said)
code, out, said = script(adds, RILLE_STANDIN_IMAGES="none", RILLE_STANDIN_OLD_NVRTC="1")
check("an NVRTC that knows no such GPU: its version, its words, and the way out", code == 1 and
      "NVRTC of CUDA 13.0" in said and "invalid value for --gpu-architecture" in said, out + said)
older_nvrtc = Path(root, "older_nvrtc/lib64")
older_nvrtc.mkdir(parents=True)
shutil.copy(toolkit + "/lib64/libnvrtc.so.13", older_nvrtc / "libnvrtc.so.12")
code, out, said = script(adds, **newer, RILLE_CUDA_PATH=str(older_nvrtc.parent))
check("images that are too new for the driver give way to an NVRTC that fits it", code == 0 and "cuda:0\t2" in out and
      "compiles Rille's kernels" in said, out + said)

# -- libraries that are not there, one by one
everything = """
local dev = rille.device "cuda:0"
local a = dev:ones{32, 32}
local image = dev:ones{1, 1, 4, 4}
print("matmul", (a:matmul(a)):sum():item())
print("conv2d", image:conv2d(dev:ones{1, 1, 3, 3}):sum():item())
print("fft", dev:ones{128, 2}:fft():totable()[1][1])
local step = rille.compile(function(x) return (x * 2):add(1):relu() end)
local y
for _ = 1, 4 do y = step(a) end
print("compiled", y:sum():item(), step:explain().one_by_one or "joined")
local profile = dev:profile(function() return (a + a):totable() end)
print("profile", profile.timed_by, profile.why or "")
local ok, k = pcall(dev.kernel, dev, [[__global__ void one(float* x) { x[0] = 5; }]])
print("kernel", ok, k)
-- A rank without NCCL says so before it meets others; with it, it cannot listen there.
local ok, why = pcall(rille.communicator, { rank = 0, world = 2, address = "192.0.2.1:9", token = "t", device = dev })
print("ranks", why.kind, why.message)
"""
answers = ("matmul\t32768", "conv2d\t36", "fft\t128", "compiled\t3072\t")


hidden = hide()
parts = {"cublaslt": ("cuBLASLt", "libcublasLt.so.13", "nvidia-cublas", "matrix products"),
         "cudnn": ("cuDNN", "libcudnn.so.9", "nvidia-cudnn-cu13", "convolutions"),
         "cufft": ("cuFFT", "libcufft.so.12", "nvidia-cufft", "Fourier transforms"),
         "nccl": ("NCCL", "libnccl.so.2", "nvidia-nccl-cu13", "communicators between GPUs"),
         "cupti": ("CUPTI", "libcupti.so.13", "nvidia-cuda-cupti", "dev:profile"),
         "nvrtc": ("NVRTC", "libnvrtc.so.13", "nvidia-cuda-nvrtc", "user kernels")}
for word, (name, file, wheel, lost) in parts.items():
    without = Path(root, "without", word)
    (without / "lib64").mkdir(parents=True)
    for other in Path(toolkit, "lib64").iterdir():
        if other.name != file:
            (without / "lib64" / other.name).symlink_to(other)
    more = dict(RILLE_CUDA_PATH=str(without), before=hidden) if hidden else dict(RILLE_CUDA_WITHOUT=word)
    row = doctor(**more)[name]
    check(f"the doctor says that {name} is missing, and what is lost", row["state"] == "missing" and
          lost in row["costs"], row)
    if hidden:
        check(f"where {name} was sought, and how it is got", file in row["found"] and str(without) in row["found"] and
              "/usr/local/cuda" in row["found"] and f"pip install {wheel}" in row["costs"] and
              "RILLE_CUDA_PATH" in row["costs"], row)
    code, out, said = script(everything, **more)
    check(f"without {name} all is computed", code == 0 and all(a in out for a in answers), out + said)
    check(f"without {name}, ranks on GPUs say so if it is NCCL", "ranks\t" + (
          "device\tcommunicators on GPUs need the library NCCL" if word == "nccl" else "network\t") in out, out)
    check(f"without {name}, its own operations say so and no others",
          (("profile\tevents" in out) == (word == "cupti")) and (("kernel\tfalse" in out) == (word == "nvrtc")) and
          (("NVRTC" in out) == (word == "nvrtc")) and (("joined" in out) == (word != "nvrtc")), out)
    if word == "nvrtc" and hidden:
        check("a user's kernel names the library, where it was sought, and how it is got",
              f"NVRTC cannot be used here: {file}" in out and str(without) in out
              and f"pip install {wheel}" in out, out)
    if word == "cupti" and hidden:
        check("a profile says where CUPTI was sought", f"CUPTI cannot be used here: {file}" in out, out)

broken = Path(root, "broken/lib64")
broken.mkdir(parents=True)
(broken / "libcudnn.so.9").write_text("this is no library")
if hidden:
    row = doctor(RILLE_CUDA_PATH=str(broken.parent), before=hidden)["cuDNN"]
    check("a library that does not load is named, and what the loader says", row["state"] == "missing" and
          str(broken / "libcudnn.so.9") in row["found"], row)

row = doctor(RILLE_NVML=root + "/none.so")["NVML"]
check("the doctor says that NVML is missing, and what is lost", row["state"] == "missing" and "none.so" in row["found"]
      and "dev:telemetry" in row["costs"], row)
code, out, said = script("""
local dev = rille.device "cuda:0"
local ok, why = pcall(dev.telemetry, dev)
print(ok, why.kind, why.message, why.hint, (dev:ones{2} + 1):totable()[1])
""", RILLE_NVML=root + "/none.so")
check("without NVML dev:telemetry says so, and tensors are computed", code == 0 and
      f"false\tdevice\tNVML {root}/none.so, named by RILLE_NVML, cannot be loaded" in out and
      out.rstrip().endswith("\t2"), out + said)

# -- a device that is lost in the middle
two = """
local a, b = rille.device "cuda:0", rille.device "cuda:1"
local x = a:ones{4}
local y = b:ones{4}
"""
after = """
print(ok, type(why) == "table" and (why.kind .. " " .. why.code .. " " .. tostring(why)) or why)
print("still", pcall(function() return (a:ones{2} + 1):totable()[1] end))
print("other", (y + 1):totable()[1])
"""
for what, fail, source in (
        ("an upload", "cuMemcpyHtoDAsync_v2@0:1:719", "a:tensor{1, 2, 3}:totable()"),
        ("a download", "cuMemcpyDtoHAsync_v2@0:1:719", "x:totable()"),
        ("a copy to another GPU", "cuMemcpyPeerAsync@0:1:719", "x:to(b):totable()"),
        ("a kernel of Rille", "cuLaunchKernel@0:2:700", "(x * 2):totable()"),
        ("a replay", "cuGraphLaunch@0:2:719",
         "local f = rille.compile(function(t) return t * 2 end) for _ = 1, 6 do f(x):totable() end")):
    code, out, said = script(f"{two}local ok, why = pcall(function() {source} end)\n{after}",
                             RILLE_STANDIN_CARDS="2", RILLE_STANDIN_FAIL=fail)
    check(f"a device that is lost in {what}: which one, the code, the way out", code == 0 and
          re.search(r"^false\tdevice cuda_7\d\d device: cuda:0: .*\((719|700)\)", out, re.M) and
          "resume from the last checkpoint" in out and "NVRM: Xid" in out, out + said)
    check(f"after a loss in {what} it stays lost, and the other device goes on", "still\tfalse\tdevice: cuda:0: " in out
          and "other\t2" in out, out + said)
code, out, said = script(kernel + "print(ok, why.code, why)", RILLE_STANDIN_FAIL="cuLaunchKernel:2:700")
check("a user's kernel that touches what is not its own: its name, the device, and how to find the place", code == 0 and
      "cuda_700\tdevice: kernel scale: cuda:0: " in out and "(700)" in out and "checked = true" in out and
      "CUDA_LAUNCH_BLOCKING=1" in out, out + said)
code, out, said = script(kernel + """
local before = dev:zeros{4}
before:totable()
local step = rille.compile(function(t) k:launch({ grid = 1, block = 4 }, 4, t) return t + 1 end)
local lost, said = pcall(function() for _ = 1, 4 do step(before):totable() end end)
print(ok, lost, said.kind, said.code, said.message, said.hint)""",
                         RILLE_STANDIN_FAIL="cuLaunchKernel@0:6:719")
check("a device that is lost in a user's kernel of a compiled step: the same error as elsewhere", code == 0 and
      re.search(r"^true\tfalse\tdevice\tcuda_719\tkernel scale: cuda:0: .*\(719\).*; launched at .*script.lua:\d+\t"
      "this process can no longer use the device: start it again, and resume from the last checkpoint", out, re.M),
      out + said)

Path(root, "corpus.txt").write_text("abcx cbay aabb " * 200)
training = """
local model = rille.nn.gpt { layers = 1, heads = 2, width = 16, context = 16, seed = 1 }
local opt = rille.optim.adamw(model:parameters(), { lr = 5e-3 })
local data = rille.data.bytes("corpus.txt", { batch = 4, context = 16, seed = 3 })
local update = rille.compile(function(x, y)
  local loss = model(x):cross_entropy(y)
  loss:backward()
  opt:step()
  return loss
end)
local done = rille.train { update = update, data = data, steps = 40, log_every = 5,
  checkpoint = { every = 10, state = { model, opt, data }, directory = "kept" } }
print("trained", done.steps, ("%.3f"):format(done.loss))
"""
code, out, said = script(training, "whole", RILLE_DEVICE="cpu")
whole = re.search(r"trained\t40\t([\d.]+)", out)
check("a training on the CPU", code == 0 and whole, out + said)
shutil.rmtree(root + "/kept", ignore_errors=True)
lost = dict(RILLE_STANDIN_CARDS="2", RILLE_STANDIN_FAIL="cuGraphLaunch@0:20:719")
code, out, said = script(training, "train", **lost)
check("a training whose device is lost in a replay ends with its name and the way out", code == 1 and
      "error (device): cuda:0: " in said and "(719)" in said and "resume from the last checkpoint" in said and
      "train.lua:" in said, said)
kept = sorted(p.name for p in Path(root, "kept").iterdir()) if Path(root, "kept").is_dir() else []
check("the checkpoint before the loss is there", kept, said)
for where in ("cpu", "cuda:1"):
    place = dict(RILLE_DEVICE=where, RILLE_STANDIN_CARDS="2")
    shutil.copytree(root + "/kept", root + "/again")
    Path(root, "again.lua").write_text(Path(root, "train.lua").read_text().replace('"kept"', '"again"'))
    code, out, said = run("run", root + "/again.lua", **place)
    rest = re.search(r"trained\t40\t([\d.]+)", out)
    check(f"it goes on from there on {where}, with the same loss", code == 0 and rest and whole and
          abs(float(rest[1]) - float(whole[1])) < 0.01 and not re.search(r"^step +5 ", out, re.M), out + said)
    shutil.rmtree(root + "/again")

shutil.rmtree(root)
finish()
