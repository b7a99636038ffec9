#!/usr/bin/env python3
"""CUDA as the command meets it: the doctor's rows, the default device, and what is said when a part is missing. The
stand-in driver (tests/support/standin) plays the GPU. usage: cuda_test.py RILLE PLUGIN DRIVER"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

rille, plugin, driver = (os.path.abspath(word) for word in sys.argv[1:4])
root = tempfile.mkdtemp(prefix="rille-cuda-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1",
           RILLE_CUDA_PLUGIN=plugin, RILLE_CUDA_DRIVER=driver)
env.pop("RILLE_DEVICE", None)


def run(*words, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout, r.stderr


def doctor(**more):
    return {row["what"]: row for row in json.loads(run("doctor", "--json", **more)[1])}


def script(source, **more):
    with open(root + "/script.lua", "w") as file:
        file.write('local rille = require "rille"\n' + source)
    return run("run", root + "/script.lua", **more)


row = doctor(RILLE_CUDA_PLUGIN="")["CUDA part"]
check("the CUDA part of the default build stands beside the command", row["state"] in ("ok", "warning") and
      row["found"].startswith(os.path.dirname(rille) + "/librille_cuda.so: "), row)
check("and the doctor says which images it has", "images for sm_" in row["found"] or
      "no images" in row["found"] and "./bootstrap cuda" in row["costs"], row)
rows = doctor()
check("the doctor sees the CUDA part, the driver and the card",
      rows["CUDA part"]["state"] == rows["CUDA driver"]["state"] == "ok" and "CUDA 13.0" in rows["CUDA driver"]["found"]
      and rows["cuda:0"]["found"].startswith("Stand-in GPU, sm_90"), rows)
rows = doctor(RILLE_CUDA_DRIVER=root + "/none.so")
check("the doctor says why there is no driver", rows["CUDA driver"]["state"] == "missing" and
      "none.so, named by RILLE_CUDA_DRIVER, cannot be loaded" in rows["CUDA driver"]["found"] and "cuda:0" not in rows,
      rows["CUDA driver"])
rows = doctor(RILLE_CUDA_PLUGIN=driver)
check("the doctor says that a library is not the CUDA part", rows["CUDA part"]["state"] == "missing" and
      "belongs to another build of Rille" in rows["CUDA part"]["costs"], rows["CUDA part"])
check("and that rented GPUs are not served either", "of rented ones" in rows["CUDA part"]["costs"] and
      "rented GPUs are not affected" not in rows["CUDA driver"]["costs"], rows)
rows = doctor(RILLE_CUDA_DRIVER=root + "/none.so")
check("with it, only this machine lacks a driver", "rented GPUs are not affected" in rows["CUDA driver"]["costs"], rows)

toolkit = os.path.dirname(driver) + "/toolkit"
rows = doctor(RILLE_CUDA_PATH=toolkit, RILLE_CUDA_WITHOUT="cupti")
check("the doctor says where each library was found, and what is left out",
      rows["cuBLASLt"]["found"] == toolkit + "/lib64/libcublasLt.so.13 (RILLE_CUDA_PATH)"
      and rows["NVRTC"]["state"] == "ok" and rows["CUPTI"]["state"] == "missing"
      and "left out" in rows["CUPTI"]["found"] and "by events" in rows["CUPTI"]["costs"], rows)

code, out, said = script("""
local a, b = rille.device "cuda:0", rille.device "cuda:1"
local x = (a:arange { 6, dtype = "f32" } * 2):detach():to(b)
local w = a:tensor({ 1, 2 }, { requires_grad = true }):to "cuda:1"
print(tostring(x), table.concat((x + 1):totable(), " "), w.requires_grad, x:to(a):sum():item())
""", RILLE_STANDIN_CARDS="2")
check("tensors go from one GPU to another", code == 0 and "f32[6] cuda:1\t1 3 5 7 9 11\ttrue\t30" in out, out + said)

name = "print(rille.device().name, (rille.device():ones{2} + 1):totable()[2])"
code, out, _ = script(name)
check("the first CUDA device is the default", code == 0 and "cuda:0\t2" in out, out)
code, out, _ = script(name, RILLE_DEVICE="cpu")
check("RILLE_DEVICE names another", code == 0 and "cpu\t2" in out, out)
code, out, _ = script(name, RILLE_CUDA_DRIVER=root + "/none.so")
check("without a driver it is the CPU", code == 0 and "cpu\t2" in out, out)
nvml = os.path.dirname(driver) + "/librille_standin_nvml.so"
code, out, said = script(name, RILLE_CUDA_DRIVER=root + "/none.so", RILLE_NVML=nvml)
check("on a machine with a GPU it is an error that names the GPU and what is missing", code == 1 and not out and
      "error (device): this machine has a GPU, NVIDIA H200 (NVML), and it cannot be used: the CUDA driver" in said and
      "RILLE_DEVICE=cpu" in said and "script.lua:2" in said, out + said)
for how in (dict(RILLE_DEVICE="cpu"), dict(CUDA_VISIBLE_DEVICES="")):
    code, out, said = script(name, RILLE_CUDA_DRIVER=root + "/none.so", RILLE_NVML=nvml, **how)
    check(f"unless {how} asks for the processor", code == 0 and "cpu\t2" in out, out + said)
code, out, said = script(name.replace("rille.device()", 'rille.device "cpu"'), RILLE_CUDA_DRIVER=root + "/none.so",
                         RILLE_NVML=nvml)
check("or the script does", code == 0 and "cpu\t2" in out, out + said)
code, out, said = script(name, RILLE_CUDA_PLUGIN=root + "/none.so", RILLE_NVML=nvml)
check("a missing CUDA part is such an error, too", code == 1 and "NVIDIA H200 (NVML)" in said and "none.so" in said,
      said)
code, out, said = script('rille.device "cuda:0"', RILLE_CUDA_DRIVER=root + "/none.so")
check("a device by name says what is missing", code == 1 and
      "error (device): there is no device 'cuda:0' here: the CUDA driver" in said, said)

shutil.rmtree(root)
finish()
